//! Columns whose PostgreSQL type and Rust type differ: named in `#[sqlx(try_from = "…")]` on a field, so that a row is read
//! straight into the type that people see. What cannot be read is an error of the column, told when it is decoded.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::{Map, RawValue, Value};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Type};

pub use crate::Dst;
use crate::{DispatcherServer, OmittedOutput};

macro_rules! columns {
    ($($(#[$about:meta])* $name:ident: $read:ty => $value:ty, |$column:ident| $made:expr;)+) => {$(
        $(#[$about])*
        pub struct $name($value);

        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <$read as Type<Postgres>>::type_info()
            }

            fn compatible(found: &PgTypeInfo) -> bool {
                <$read as Type<Postgres>>::compatible(found)
            }
        }

        impl<'r> Decode<'r, Postgres> for $name {
            fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
                let $column = <$read>::decode(value)?;
                Ok(Self($made))
            }
        }

        impl From<$name> for $value {
            fn from(column: $name) -> Self {
                column.0
            }
        }
    )+};
}

columns! {
    /// A time.
    At: jiff_sqlx::Timestamp => Timestamp, |time| time.to_jiff();
    /// A time, or none.
    MaybeAt: Option<jiff_sqlx::Timestamp> => Option<Timestamp>, |time| time.map(jiff_sqlx::Timestamp::to_jiff);
    /// A length of time, selected in seconds.
    Span: f64 => Duration, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    /// Such a length, or none.
    MaybeSpan: Option<f64> => Option<Duration>, |seconds| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    /// JSON, selected as text so that it stays as it was written.
    Json: String => Box<RawValue>, |text| RawValue::from_string(text)?;
    /// Such JSON, or none.
    MaybeJson: Option<String> => Option<Box<RawValue>>, |text| text.map(RawValue::from_string).transpose()?;
    /// What is known of an output that stayed with the engine, as such JSON.
    MaybeOmitted: Option<String> => Option<OmittedOutput>, |text| text.map(|text| serde_json::from_str(&text)).transpose()?;
    /// Such JSON that is an object.
    Object: String => Map<String, Value>, |text| serde_json::from_str(&text)?;
    /// The servers that stand by a dispatcher, as such JSON.
    Servers: String => Vec<DispatcherServer>, |text| serde_json::from_str(&text)?;
}
