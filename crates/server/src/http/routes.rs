//! How routes are added: never without a role. A route and its description come from the same place, so neither can be
//! without the other, and the document tells for each operation what the tests then prove.

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use serde_json::json;
use stationmaster_core::access::Role;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{OpenApi, Ref, RefOr, Required};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::State;
use super::caller::Caller;
use super::idempotency;
use super::problem::{Kind, Problem};

/// The routes of a noun.
pub(super) struct Routes(OpenApiRouter<State>);

/// Who answers a repeat of a POST.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    /// The first answer is kept, by `Idempotency-Key`.
    Kept,
    /// The route sees to it.
    Own,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self(OpenApiRouter::default())
    }

    /// For whoever may look.
    pub(super) fn viewer(self, route: UtoipaMethodRouter<State>) -> Self {
        self.add(Role::Viewer, Repeats::Kept, route)
    }

    /// For whoever may do things to the queue.
    pub(super) fn operator(self, route: UtoipaMethodRouter<State>) -> Self {
        self.add(Role::Operator, Repeats::Kept, route)
    }

    /// For whoever may change the catalogue and the tokens.
    pub(super) fn admin(self, route: UtoipaMethodRouter<State>) -> Self {
        self.add(Role::Admin, Repeats::Kept, route)
    }

    /// The same for a route that sees to repeats itself, or whose answer must not be kept.
    pub(super) fn unkept(self, role: Role, route: UtoipaMethodRouter<State>) -> Self {
        self.add(role, Repeats::Own, route)
    }

    pub(super) fn merge(self, other: Self) -> Self {
        Self(self.0.merge(other.0))
    }

    /// The routes and the document that describes them.
    pub(super) fn split(self) -> (Router<State>, OpenApi) {
        self.0.split_for_parts()
    }

    fn add(self, role: Role, repeats: Repeats, route: UtoipaMethodRouter<State>) -> Self {
        let (schemas, mut paths, mut router) = route;
        let mut keeps = false;
        for item in paths.paths.values_mut() {
            keeps |= item.post.is_some() && repeats == Repeats::Kept;
            for operation in operations(item) {
                describe(operation, role);
            }
            conditions(item);
            if let Some(post) = item.post.as_mut().filter(|_| repeats == Repeats::Kept) {
                post.parameters
                    .get_or_insert_default()
                    .push(idempotency_key().into());
            }
        }
        if keeps {
            router = router.route_layer(from_fn(idempotency::keep));
        }
        let require = move |Extension(caller): Extension<Caller>, request: Request, next: Next| async move {
            require(role, &caller, request, next).await
        };
        Self(
            self.0
                .routes((schemas, paths, router.route_layer(from_fn(require)))),
        )
    }
}

async fn require(role: Role, caller: &Caller, request: Request, next: Next) -> Response {
    if caller.role >= role {
        return next.run(request).await;
    }
    let words = format!(
        "this needs the role {}; the token has {}",
        role.as_str(),
        caller.role.as_str()
    );
    Problem::new(Kind::Forbidden, words).into_response()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn describe(operation: &mut Operation, role: Role) {
    let problem = || RefOr::Ref(Ref::new("#/components/responses/Problem"));
    for status in ["401", "403", "429", "default"] {
        operation
            .responses
            .responses
            .entry(status.to_owned())
            .or_insert_with(problem);
    }
    operation.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
    operation.extensions = Some(
        ExtensionsBuilder::new()
            .add("x-role", json!(role.as_str()))
            .build(),
    );
}

/// What can be refused for what the caller expected (412) takes the headers that say so; only a PUT makes what is not there.
fn conditions(item: &mut PathItem) {
    let tags = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r#"^(\*|"[!#-~]*"(, ?"[!#-~]*")*)$"#));
    let there = header("If-Match", "Only if it is there and has this tag", tags);
    let star = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^\*$"));
    let absent = header("If-None-Match", "`*`: only if it is not there", star);
    for operation in operations(item) {
        if operation.responses.responses.contains_key("412") {
            operation
                .parameters
                .get_or_insert_default()
                .push(there.clone().into());
        }
    }
    if let Some(put) = &mut item.put {
        put.parameters.get_or_insert_default().push(absent.into());
    }
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(256))
        .pattern(Some("^[!-~]+$"));
    let words = "A repeat with the same key and the same body is answered as the first was, for a day";
    header("Idempotency-Key", words, schema)
}

fn header(name: &str, words: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(words))
        .schema(Some(schema))
        .build()
}
