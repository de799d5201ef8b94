//! The document that describes the API (`OpenAPI` 3.1), made from the routes themselves.

use stationmaster_client::wire;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, License, OpenApi, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa::{PartialSchema as _, ToResponse};

use super::{examples, shapes};

const DESCRIPTION: &str = "\
Durable dispatch: every piece of work leaves once, in time, and only when there is room.

Every request needs a token, `Authorization: Bearer smt_…`; `x-role` tells which role an operation needs. What a token may not
see does not exist for it (404); naming a workspace out of its reach in a body or a filter is refused (403). Every refusal is
`application/problem+json`.";

/// The answer that every refusal is.
pub(super) struct ProblemAnswer;

impl<'r> ToResponse<'r> for ProblemAnswer {
    fn response() -> (&'r str, RefOr<Response>) {
        let content = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name("Problem")))
            .example(Some(examples::problem()))
            .build();
        let response = ResponseBuilder::new()
            .description("Refused, and why")
            .content("application/problem+json", content)
            .build();
        ("Problem", response.into())
    }
}

/// The document.
pub(crate) fn document() -> OpenApi {
    let (_, mut document) = super::nouns().split();
    document.info = InfoBuilder::new()
        .title("Stationmaster")
        .version("1")
        .description(Some(DESCRIPTION))
        .license(Some(License::new("Apache-2.0")))
        .build();
    let (name, problem) = ProblemAnswer::response();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("Made by `stationmaster tokens create NAME --role ROLE`"))
        .build();
    let mut components = ComponentsBuilder::new()
        .response(name, problem)
        .security_scheme("token", SecurityScheme::Http(scheme))
        .schema("Problem", wire::Problem::schema())
        .schema("FieldError", wire::FieldError::schema())
        .schema("Taken", wire::Taken::schema())
        .build();
    if let Some(found) = document.components.take() {
        components.schemas.extend(found.schemas);
    }
    document.components = Some(components);
    shapes::name_all(&mut document);
    examples::put(&mut document);
    document
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_document_in_the_repository_is_what_the_routes_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        let made = super::document().to_pretty_json().unwrap();
        assert!(
            kept.trim_end() == made.trim_end(),
            "docs/openapi.json is not what the routes say: cargo run -p stationmaster -- docs openapi > docs/openapi.json"
        );
    }
}
