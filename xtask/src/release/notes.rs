//! Notes for a version: what the changelog says of it, what the program says of itself, and the checksums.

/// What the changelog says under the heading of this version, without the heading.
pub(super) fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let heading = format!("## {version}");
    let is_it = |line: &str| {
        line.strip_prefix(&heading)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let mut begins = 0;
    let mut lines = changelog.split_inclusive('\n');
    while !is_it(changelog[begins..].lines().next()?) {
        begins += lines.next()?.len();
    }
    let rest = &changelog[begins + heading.len()..];
    let rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
    let end = rest.find("\n## ").unwrap_or(rest.len());
    Some(rest[..end].trim())
}

/// The whole page.
pub(super) fn write(changelog: &str, version: &str, told: &str, sums: &str) -> String {
    let changes = section(changelog, version).or_else(|| section(changelog, "Unreleased"));
    let changes = changes.unwrap_or_default();
    format!(
        "# Stationmaster {version}\n\n{changes}\n\n## This build\n\n```text\n{told}\n```\n\n## Checksums (SHA-256)\n\n```text\n{sums}\n```\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Changelog\n\n## Unreleased\n\n- soon\n\n## 1.2.3 (2026-11-16)\n\n- this\n- that\n\n## 1.2\n\n- before\n";

    #[test]
    fn the_section_of_a_version_ends_where_the_next_one_begins() {
        assert_eq!(section(PAGE, "1.2.3"), Some("- this\n- that"));
        assert_eq!(section(PAGE, "1.2"), Some("- before"));
        assert_eq!(section(PAGE, "Unreleased"), Some("- soon"));
        assert_eq!(section(PAGE, "1"), None, "a version is named whole");
    }
}
