//! `dendrer completions`

use dendrer_object::Code;
use std::io::IsTerminal;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::failure::Failure;
use crate::failure::Result;
use crate::offers;
use crate::offers::SHELLS;
use crate::offers::script;
use crate::out::Out;

/// `completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell: bash, zsh, fish, powershell, nushell or elvish
    #[arg(add = ArgValueCompleter::new(offers::shell_names))]
    pub(crate) shell: String,
}

pub(crate) fn run(args: &Completions, out: &mut Out) -> Result {
    let Some(text) = script(&args.shell.to_lowercase()) else {
        let failure = Failure::new(Code::E0106, format!("no completions are known for \"{}\"", args.shell))
            .at("shells", SHELLS.join(", "));
        let near = dendrer_object::text::nearest(&args.shell, SHELLS.iter().copied());
        return Err(failure.help(&["dendrer", "completions", near.unwrap_or(SHELLS[0])]));
    };
    out.bytes(&text)?;
    // A shell that reads this at every start must not be spoken to.
    if !std::io::stdout().is_terminal() {
        return Ok(0);
    }
    out.say(match args.shell.as_str() {
        "bash" => "help: put into ~/.bashrc:  source <(dendrer completions bash)",
        "zsh" => "help: put into ~/.zshrc:  source <(dendrer completions zsh)",
        "fish" => "help: dendrer completions fish -o ~/.config/fish/completions/dendrer.fish",
        "powershell" => {
            "help: put into $PROFILE:  dendrer completions powershell | Out-String | Invoke-Expression"
        }
        "elvish" => "help: put into rc.elv:  eval (dendrer completions elvish | slurp)",
        _ => "help: save it, and `source` it from config.nu",
    });
    Ok(0)
}
