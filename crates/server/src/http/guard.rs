//! Around every request: its name, a place among those under way, a bound on its time, and a net for panics. Whatever comes
//! out as a refusal gets its body here.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use stationmaster_core::observe::{Metrics, trace};
use stationmaster_core::task::panic_message;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;
use uuid::Uuid;

use super::State;
use super::problem::{Kind, Problem, render};
use super::routes::Route;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Methods that are told apart; callers may invent others.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// The longest name that is taken over from a caller.
const LONGEST_ID: usize = 128;

/// A request's place among those under way. Work that goes on when nobody waits for its answer any more keeps it.
#[derive(Clone)]
pub(super) struct Place(#[expect(dead_code, reason = "held")] Option<Arc<OwnedSemaphorePermit>>);

/// Carries a request through.
pub(super) async fn guard(Shared(state): Shared<State>, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let began = Instant::now();
    let span = tracing::info_span!("request", id);
    span.in_scope(|| trace::link(super::trace::read(request.headers()).as_deref()));
    let under_way = UnderWay::new(&state.metrics);
    let response = run(&state, request, next).instrument(span).await;
    drop(under_way);
    let mut response = render(response, &id, state.detail);
    if let Ok(id) = HeaderValue::try_from(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let (status, took) = (response.status().as_u16(), began.elapsed());
    let marked = response.extensions().get::<Route>();
    let route = marked.map_or_else(|| door(&path), |route| &route.0);
    let known = METHODS.iter().find(|known| **known == method.as_str());
    state
        .metrics
        .answered(route, known.unwrap_or(&"OTHER"), status, took);
    tracing::debug!(%method, path, status, ?took, id, "Answered a request");
    response
}

/// The doors beside the API are routes by their own names.
fn door(path: &str) -> &'static str {
    let doors = [
        "/",
        "/docs",
        "/livez",
        "/readyz",
        "/healthz",
        "/metrics",
        "/v1/openapi.json",
    ];
    doors.into_iter().find(|door| *door == path).unwrap_or("none")
}

/// Counts a request until its answer has begun, or it is given up.
struct UnderWay(Arc<Metrics>);

impl UnderWay {
    fn new(metrics: &Arc<Metrics>) -> Self {
        metrics.request_began();
        Self(Arc::clone(metrics))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.request_ended();
    }
}

async fn run(state: &State, mut request: Request, next: Next) -> Response {
    // Whether this server lives must be told however much is under way.
    let counted = request.uri().path().starts_with("/v1");
    let place = counted.then(|| state.limits.request()).transpose();
    let place = match place {
        Ok(place) => place.map(Arc::new),
        Err(problem) => return problem.into_response(),
    };
    request.extensions_mut().insert(Place(place.clone()));
    let response = carry(state.settings.request_timeout, request, next).await;
    drop(place);
    response
}

async fn carry(longest: Duration, request: Request, next: Next) -> Response {
    let work = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(longest, work).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            tracing::error!(panic = panic_message(&*panic), "A request panicked");
            Problem::new(
                Kind::Internal,
                "the server's log tells more, under the request id",
            )
            .into_response()
        }
        Err(_) => {
            let words = "the setting http.request_timeout bounds how long a request may take";
            Problem::new(Kind::Timeout, words).retry_after(1).into_response()
        }
    }
}

/// Carries something out to its end, in a task of its own: whoever goes away, or gives up waiting, does not cut it off. A panic in it
/// is one of whoever waits.
pub(super) async fn to_its_end<T: Send + 'static>(
    place: Option<Place>,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let work = async move {
        let _place = place;
        work.await
    };
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The caller's name for the request, when it can be shown in a log; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let fit = |text: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(plain)
    };
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(fit);
    given.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::super::problem::Detail;
    use super::*;

    async fn answer(router: Router) -> (StatusCode, String) {
        let carried = |request: Request, next: Next| carry(Duration::from_millis(50), request, next);
        let router = router.layer(from_fn(carried));
        let response = router.oneshot(Request::new(Body::empty())).await.unwrap();
        let response = render(response, "a-request", Detail::Kept);
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        assert_eq!(kind, "application/problem+json");
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_that_tells_nothing_of_the_inside() {
        async fn broken() {
            panic!("the key under the mat")
        }
        let (status, body) = answer(Router::new().route("/", get(broken))).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(
            body.contains("urn:stationmaster:problem:internal") && body.contains("a-request"),
            "{body}"
        );
        assert!(!body.contains("mat"), "{body}");
    }

    #[tokio::test]
    async fn a_request_that_never_ends_is_ended() {
        let (status, body) = answer(Router::new().route("/", get(std::future::pending::<()>))).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.contains("urn:stationmaster:problem:timeout"), "{body}");
    }

    #[test]
    fn a_name_that_could_forge_a_line_of_the_log_is_replaced() {
        let with = |text: &str| {
            let value = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            request_id(&HeaderMap::from_iter([(REQUEST_ID, value)]))
        };
        assert_eq!(with("trace-7.a:b_c"), "trace-7.a:b_c");
        for text in ["", "a b", "a\tlevel=error", &"x".repeat(129)] {
            assert_ne!(with(text), text);
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
