//! What pages need besides themselves, from the binary, under names that change with what is in them.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 3] = [
    Asset {
        name: "style.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("assets/style.css"),
    },
    Asset {
        name: "script.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("assets/script.js"),
    },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        text: include_str!("assets/icon.svg"),
    },
];

/// Each under its name with a hash in front.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let name = |asset: &Asset| {
        let hash = Sha256::digest(asset.text);
        let hash = u64::from_be_bytes(std::array::from_fn(|at| hash[at]));
        let hash = format!("{hash:016x}");
        format!("{hash}-{}", asset.name)
    };
    ASSETS.iter().map(name).collect()
});

/// Where an asset is.
pub(super) fn address(name: &str) -> String {
    let place = ASSETS.iter().position(|asset| asset.name == name);
    place.map_or_else(String::new, |place| format!("/assets/{}", NAMES[place]))
}

/// What has this name never changes.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let Some(place) = NAMES.iter().position(|known| *known == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let asset = &ASSETS[place];
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, asset.text).into_response()
}
