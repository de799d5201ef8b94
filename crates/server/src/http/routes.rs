//! How routes are added: never without a role. A route and its description come from the same place, so neither can be
//! without the other, and the document tells for each operation what the tests then prove.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use serde_json::json;
use stationmaster_core::access::Role;
use utoipa::PartialSchema as _;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::State;
use super::caller::Caller;
use super::problem::{Kind, Problem};
use super::{idempotency, limits};

/// The routes of a noun.
pub(super) struct Routes {
    noun: &'static str,
    /// Its things have names.
    named: bool,
    router: OpenApiRouter<State>,
}

/// Which route answered, as the program knows it: its answers carry it.
#[derive(Debug, Clone)]
pub(super) struct Route(pub(super) Arc<str>);

/// Who answers a repeat of a POST.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    /// The first answer is kept, by `Idempotency-Key`.
    Kept,
    /// The route sees to it.
    Own,
}

impl Routes {
    /// Those of one of these: what the `{id}` in their paths names.
    pub(super) fn of(noun: &'static str) -> Self {
        Self {
            noun,
            named: false,
            router: OpenApiRouter::default(),
        }
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
        Self {
            router: self.router.merge(other.router),
            ..self
        }
    }

    /// The routes and the document that describes them.
    pub(super) fn split(self) -> (Router<State>, OpenApi) {
        self.router.split_for_parts()
    }

    fn add(self, role: Role, repeats: Repeats, route: UtoipaMethodRouter<State>) -> Self {
        let (schemas, mut paths, mut router) = route;
        let mut keeps = false;
        for (path, item) in &mut paths.paths {
            keeps |= item.post.is_some() && repeats == Repeats::Kept;
            for operation in operations(item) {
                describe(operation, role);
                if path.contains("{id}") {
                    self.name_by_id(operation);
                }
            }
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
        let path: Arc<str> = paths.paths.keys().next().map_or("none", String::as_str).into();
        let mark = move |request: Request, next: Next| {
            let route = Route(Arc::clone(&path));
            async move {
                let mut response = next.run(request).await;
                response.extensions_mut().insert(route);
                response
            }
        };
        // The outermost: whoever is refused was on this route too.
        let router = router.route_layer(from_fn(require)).route_layer(from_fn(mark));
        let route = (schemas, paths, router);
        Self {
            router: self.router.routes(route),
            ..self
        }
    }

    /// Where these things have ids, their names are taken too.
    pub(super) fn named(self) -> Self {
        Self { named: true, ..self }
    }

    /// What an id names may not be there. It is a UUID, unless the operation says otherwise or names are taken too.
    fn name_by_id(&self, operation: &mut Operation) {
        refuses(operation, &["404"]);
        let parameters = operation.parameters.get_or_insert_default();
        if !parameters
            .iter()
            .any(|parameter| matches!(parameter, RefOr::T(known) if known.name == "id"))
        {
            let text = ObjectBuilder::new().schema_type(Type::String);
            let (uuid, words) = if self.named {
                let words = format!("The {}: its id or its name", self.noun);
                (text.min_length(Some(1)).max_length(Some(200)), words)
            } else {
                let uuid = SchemaFormat::KnownFormat(KnownFormat::Uuid);
                (text.format(Some(uuid)), format!("The {}", self.noun))
            };
            let id = ParameterBuilder::new()
                .name("id")
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some(words))
                .schema(Some(uuid));
            parameters.insert(0, id.build().into());
        }
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

/// The operations of a path.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
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

/// Says that an operation can be refused with these statuses.
fn refuses(operation: &mut Operation, statuses: &[&str]) {
    let problem = || RefOr::Ref(Ref::new("#/components/responses/Problem"));
    for status in statuses {
        let responses = &mut operation.responses.responses;
        responses.entry((*status).to_owned()).or_insert_with(problem);
    }
}

fn describe(operation: &mut Operation, role: Role) {
    refuses(operation, &["401", "403", "429", "default"]);
    operation.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
    operation.extensions = Some(
        ExtensionsBuilder::new()
            .add("x-role", json!(role.as_str()))
            .build(),
    );
}

/// A route that may read much: it waits for its turn among those, so that lists leave room for everything else.
pub(super) fn long((schemas, paths, router): UtoipaMethodRouter<State>) -> UtoipaMethodRouter<State> {
    (schemas, paths, router.route_layer(from_fn(limits::in_turn)))
}

/// A route that servers can carry out later, as an operation, when the caller prefers that.
pub(super) fn detachable(mut route: UtoipaMethodRouter<State>) -> UtoipaMethodRouter<State> {
    let asynchronous = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(200));
    let words = "`respond-async`: put it on record and answer 202; servers carry it out, and `/v1/operations/{id}` tells how far they are. A dry run is answered at once all the same";
    let prefer = header("Prefer", words, asynchronous);
    let text = || HeaderBuilder::new().schema(Some(String::schema()));
    let begun = ResponseBuilder::new()
        .description("It is on record, and servers carry it out")
        .header("location", text().description(Some("The operation")).build())
        .header(
            "preference-applied",
            text().description(Some("respond-async")).build(),
        )
        .content(
            "application/json",
            ContentBuilder::new()
                .schema(Some(Ref::from_schema_name("Operation")))
                .build(),
        )
        .build();
    for operation in route.1.paths.values_mut().flat_map(operations) {
        operation
            .parameters
            .get_or_insert_default()
            .push(prefer.clone().into());
        let responses = &mut operation.responses.responses;
        responses.insert("202".to_owned(), begun.clone().into());
        refuses(operation, &["409"]);
    }
    route
}

/// A route that answers with a [`Tagged`](super::etag::Tagged).
pub(super) fn tagged(mut route: UtoipaMethodRouter<State>) -> UtoipaMethodRouter<State> {
    for operation in route.1.paths.values_mut().flat_map(operations) {
        if let Some(RefOr::T(answer)) = operation.responses.responses.get_mut("200") {
            let tag = HeaderBuilder::new()
                .schema(Some(String::schema()))
                .description(Some("For If-Match"));
            answer.headers.insert("etag".to_owned(), tag.build().into());
        }
    }
    route
}

/// A route that takes what the caller [`Expected`](super::etag::Expected); only a PUT makes what is not there.
pub(super) fn conditional(route: UtoipaMethodRouter<State>) -> UtoipaMethodRouter<State> {
    let mut route = tagged(route);
    let tags = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r#"^(\*|"[!#-~]*"(, ?"[!#-~]*")*)$"#));
    let there = header("If-Match", "Only if it is there and has this tag", tags);
    let star = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^\*$"));
    let absent = header("If-None-Match", "`*`: only if it is not there", star);
    for item in route.1.paths.values_mut() {
        for operation in operations(item) {
            refuses(operation, &["412", "428"]);
            let parameters = operation.parameters.get_or_insert_default();
            parameters.push(there.clone().into());
        }
        if let Some(put) = &mut item.put {
            put.parameters.get_or_insert_default().push(absent.clone().into());
        }
    }
    route
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
