//! The two formats in which metrics are told. The library writes `OpenMetrics`; what Prometheus has always read differs in the names that
//! stand above counters, and knows neither units, nor exemplars, nor an end.

/// How to write metrics down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own text, version 0.0.4.
    Text,
    /// `OpenMetrics` 1.0.0, with exemplars.
    OpenMetrics,
}

impl Format {
    /// The one that a header `Accept` asks for: `OpenMetrics` only when it is named.
    #[must_use]
    pub fn accepted(accept: Option<&str>) -> Self {
        let named = |one: &str| one.trim_start().starts_with("application/openmetrics-text");
        match accept {
            Some(kinds) if kinds.split(',').any(named) => Self::OpenMetrics,
            _ => Self::Text,
        }
    }

    /// As a header tells it.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// `OpenMetrics` as Prometheus' text.
pub(super) fn plain(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let mut line = |words: &[&str]| {
        for word in words {
            text.push_str(word);
        }
        text.push('\n');
    };
    let mut help = None;
    for one in open.lines() {
        if let Some(rest) = one.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = one.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let ending = if kind == "counter" { "_total" } else { "" };
            if let Some((_, words)) = help.take() {
                line(&["# HELP ", name, ending, " ", words]);
            }
            line(&["# TYPE ", name, ending, " ", kind]);
        } else if !one.starts_with('#') {
            let bare = one.find(" # {").map_or(one, |exemplar| &one[..exemplar]);
            // A metric without labels that comes and goes.
            match bare.split_once("{} ") {
                Some((name, value)) => line(&[name, " ", value]),
                None => line(&[bare]),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_counters_as_they_are_asked_for_and_leaves_out_what_prometheus_does_not_read() {
        let open = "# HELP a_seconds Times.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
                    a_seconds_bucket{le=\"1.0\"} 3 # {trace_id=\"ab\"} 0.5\na_seconds_count 3\n\
                    # HELP b Things.\n# TYPE b counter\nb_total{c=\"d\"} 7\n\
                    # HELP e At times.\n# TYPE e gauge\ne{} 1.0\n# EOF\n";
        let text = "# HELP a_seconds Times.\n# TYPE a_seconds histogram\na_seconds_bucket{le=\"1.0\"} 3\na_seconds_count 3\n\
                    # HELP b_total Things.\n# TYPE b_total counter\nb_total{c=\"d\"} 7\n# HELP e At times.\n# TYPE e gauge\ne 1.0\n";
        assert_eq!(plain(open), text);
    }

    #[test]
    fn openmetrics_is_spoken_to_whoever_names_it() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        for other in [None, Some("text/plain"), Some("*/*"), Some("text/html, */*")] {
            assert_eq!(Format::accepted(other), Format::Text, "{other:?}");
        }
    }
}
