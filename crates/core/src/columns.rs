//! Columns whose PostgreSQL type and Rust type differ: named in `#[sqlx(try_from = "…")]` on a field, so that a row is read
//! straight into the type that people see. Knows no noun.

use jiff::Timestamp;
use serde_json::value::RawValue;
use sqlx::error::{BoxDynError, UnexpectedNullError};
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Type};

/// A column of time: becomes a [`Timestamp`], or an optional one.
pub(crate) struct At(Option<Timestamp>);

impl Type<Postgres> for At {
    fn type_info() -> PgTypeInfo {
        <jiff_sqlx::Timestamp as Type<Postgres>>::type_info()
    }
}

impl<'r> Decode<'r, Postgres> for At {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let time = Option::<jiff_sqlx::Timestamp>::decode(value)?;
        Ok(Self(time.map(jiff_sqlx::Timestamp::to_jiff)))
    }
}

impl From<At> for Option<Timestamp> {
    fn from(at: At) -> Self {
        at.0
    }
}

impl TryFrom<At> for Timestamp {
    type Error = UnexpectedNullError;

    fn try_from(at: At) -> Result<Self, Self::Error> {
        at.0.ok_or(UnexpectedNullError)
    }
}

/// A column of JSON, read as text so that it stays as it was written: becomes a [`RawValue`], or an optional one.
pub(crate) struct Json(Option<Box<RawValue>>);

impl Type<Postgres> for Json {
    fn type_info() -> PgTypeInfo {
        <String as Type<Postgres>>::type_info()
    }

    fn compatible(found: &PgTypeInfo) -> bool {
        <String as Type<Postgres>>::compatible(found)
    }
}

impl<'r> Decode<'r, Postgres> for Json {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let text = Option::<String>::decode(value)?;
        Ok(Self(text.map(RawValue::from_string).transpose()?))
    }
}

impl From<Json> for Option<Box<RawValue>> {
    fn from(json: Json) -> Self {
        json.0
    }
}

impl TryFrom<Json> for Box<RawValue> {
    type Error = UnexpectedNullError;

    fn try_from(json: Json) -> Result<Self, Self::Error> {
        json.0.ok_or(UnexpectedNullError)
    }
}
