//! `@every` with a duration: a number and a unit, several times, such as `90s`, `1h30m`, `2d 12h`.

use super::ParseError;
use super::field::digits;
use super::word::Word;

const UNITS: [(&str, i64); 5] = [
    ("s", 1),
    ("m", 60),
    ("h", 3_600),
    ("d", 86_400),
    ("w", 7 * 86_400),
];

/// A period that is longer was not meant.
const LONGEST: i64 = 100 * 366 * 86_400;

/// The seconds of a duration. The word `@every` comes before it.
pub(super) fn seconds(nickname: Word<'_>, words: &[Word<'_>]) -> Result<i64, ParseError> {
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        let end = nickname.at().end;
        return Err(ParseError::new(
            end..end,
            "`@every` needs a duration, as in `@every 1h30m`",
        ));
    };
    let mut total = 0_i64;
    for word in words {
        total = total.saturating_add(of_word(*word)?);
    }
    let at = first.at().start..last.at().end;
    match total {
        0 => Err(ParseError::new(
            at,
            "the period is no time at all: the shortest is `1s`",
        )),
        _ if total > LONGEST => Err(ParseError::new(at, "the period is more than a hundred years")),
        _ => Ok(total),
    }
}

fn of_word(word: Word<'_>) -> Result<i64, ParseError> {
    let mut total = 0_i64;
    let mut from = 0;
    while from < word.text.len() {
        let rest = &word.text[from..];
        let number = rest.find(|character: char| !character.is_ascii_digit());
        let number = number.unwrap_or(rest.len());
        let unit = rest[number..].find(|character: char| character.is_ascii_digit());
        let unit = unit.map_or(rest.len(), |unit| number + unit);
        let piece = word.part(from..from + unit);
        let count = digits(piece.part(0..number));
        let name = &rest[number..unit];
        let length = UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name));
        let (Some(count), Some((_, length))) = (count, length) else {
            return Err(piece.wrong(format!(
                "{:?} is not a duration: write whole numbers with s, m, h, d or w, as in `90s` or `1h30m`",
                piece.text
            )));
        };
        total = total.saturating_add(i64::from(count) * length);
        from += unit;
    }
    Ok(total)
}
