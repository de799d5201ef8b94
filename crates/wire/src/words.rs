//! Words: the closed sets of names that rows, histories and metrics spell, each of them an enum.
//!
//! A word is text in the database and in JSON, and a value everywhere else, so the compiler lists who must know a new one. Text
//! that is none of the words is an error of whoever reads it and never becomes another word. What the words mean is told where
//! they are defined, here when people are shown them; this module knows no noun.

/// Text that is none of the words that it should be one of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is none of {known}")]
pub struct UnknownWord {
    found: String,
    known: String,
}

impl UnknownWord {
    #[doc(hidden)]
    #[must_use]
    pub fn new(found: &str, known: &[&str]) -> Self {
        Self {
            found: found.to_owned(),
            known: known.join(", "),
        }
    }
}

/// Defines enums whose variants are words.
#[macro_export]
macro_rules! words {
    ($($(#[$about:meta])* $visibility:vis enum $name:ident {
        $($(#[$meaning:meta])* $word:ident = $text:tt,)+
    })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        $visibility enum $name {
            $($(#[$meaning])* #[serde(rename = $text)] $word,)+
        }

        impl $name {
            /// All there are.
            $visibility const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// As it is spelled.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|word| word.as_str() == text);
                found.copied().ok_or_else(|| $crate::words::UnknownWord::new(text, &[$($text,)+]))
            }
        }

        /// In requests it may be written in any case.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                let found = Self::ALL.iter().find(|word| word.as_str().eq_ignore_ascii_case(&text));
                found.copied().ok_or_else(|| serde::de::Error::unknown_variant(&text, &[$($text,)+]))
            }
        }

        impl From<$name> for &'static str {
            fn from(word: $name) -> Self {
                word.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        $crate::words_in_rows!($name);
    )+};
}

/// Words are text in rows too.
#[cfg(feature = "rows")]
#[doc(hidden)]
#[macro_export]
macro_rules! words_in_rows {
    ($name:ident) => {
        impl sqlx::Type<sqlx::Postgres> for $name {
            fn type_info() -> sqlx::postgres::PgTypeInfo {
                <&str as sqlx::Type<sqlx::Postgres>>::type_info()
            }

            fn compatible(found: &sqlx::postgres::PgTypeInfo) -> bool {
                <&str as sqlx::Type<sqlx::Postgres>>::compatible(found)
            }
        }

        impl sqlx::postgres::PgHasArrayType for $name {
            fn array_type_info() -> sqlx::postgres::PgTypeInfo {
                <&str as sqlx::postgres::PgHasArrayType>::array_type_info()
            }
        }

        impl sqlx::Encode<'_, sqlx::Postgres> for $name {
            fn encode_by_ref(
                &self,
                buffer: &mut sqlx::postgres::PgArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <&str as sqlx::Encode<'_, sqlx::Postgres>>::encode(self.as_str(), buffer)
            }
        }

        impl<'r> sqlx::Decode<'r, sqlx::Postgres> for $name {
            fn decode(value: sqlx::postgres::PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                Ok(<&str as sqlx::Decode<'r, sqlx::Postgres>>::decode(value)?.parse()?)
            }
        }
    };
}

/// Without the feature `rows` they are not.
#[cfg(not(feature = "rows"))]
#[doc(hidden)]
#[macro_export]
macro_rules! words_in_rows {
    ($name:ident) => {};
}

#[cfg(test)]
mod tests {
    words! {
        /// For the tests.
        enum Colour {
            /// The first.
            Red = "RED",
            /// The other.
            PaleBlue = "PALE_BLUE",
        }
    }

    #[test]
    fn every_word_is_read_as_it_is_spelled() {
        for colour in Colour::ALL {
            assert_eq!(colour.as_str().parse(), Ok(*colour));
            assert_eq!(serde_json::json!(colour), colour.to_string());
        }
    }

    #[test]
    fn text_that_is_no_word_is_refused_with_the_words_there_are() {
        let refused = "red".parse::<Colour>().unwrap_err();
        assert_eq!(refused.to_string(), r#""red" is none of RED, PALE_BLUE"#);
    }
}
