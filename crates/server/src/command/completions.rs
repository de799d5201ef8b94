//! `stationmaster completions`: what a shell needs to complete our commands, and to ask for the names that fit.

use std::io::Write as _;

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::cli::tree;

/// For which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    // Into memory first: the generator panics when its reader goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree(), "stationmaster", &mut script);
    let script = with_names(args.shell, &String::from_utf8(script)?);
    std::io::stdout().write_all(script.as_bytes())?;
    Ok(())
}

/// The script, asking for names first where there is a way to; elsewhere it knows commands and flags alone.
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!(
            "{}{BASH}",
            script.replace("complete -F _stationmaster ", "complete -F _stationmaster_names ")
        ),
        Shell::Zsh => {
            let known = script.replacen("_stationmaster() {", "_stationmaster_known() {", 1);
            known.replacen(
                "if [ \"$funcstack[1]\"",
                &format!("{ZSH}\nif [ \"$funcstack[1]\""),
                1,
            )
        }
        Shell::Fish => format!("{script}{FISH}"),
        _ => script.to_owned(),
    }
}

const BASH: &str = r#"
_stationmaster_names() {
    local names
    if names=$("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); then
        local IFS=$'\n'
        COMPREPLY=( $names )
    else
        _stationmaster "$@"
    fi
}
"#;

const ZSH: &str = r#"_stationmaster() {
    local names
    if names=$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null); then
        compadd -- ${(f)names}
    else
        _stationmaster_known "$@"
    fi
}
"#;

const FISH: &str = r#"
function __stationmaster_names
    set -l words (commandline -opc) (commandline -ct)
    command $words[1] __complete -- $words[2..] 2>/dev/null
end
complete -c stationmaster -n '__stationmaster_names >/dev/null' -f -a '(__stationmaster_names)'
"#;
