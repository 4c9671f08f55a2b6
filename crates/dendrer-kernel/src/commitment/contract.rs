//! The contract of a delegation: what a child run may do, and what it is bound to (CCAS paper 6.5).

use std::sync::Arc;

use dendrer_object::Value;

use super::form;

/// What a child run may do and has to bring.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegationContract {
    /// The id of the `deleg` in the parent.
    pub id: Arc<str>,
    /// Tools that it may call; `None` for all.
    pub tools: Option<Vec<Arc<str>>>,
    /// Patterns of the files that a call may name; `None` for all.
    pub files: Option<Vec<Arc<str>>>,
    /// Members of the output with which the child completes its goal.
    pub deliverables: Vec<Arc<str>>,
    /// As it was written.
    pub written: Value,
}

impl DelegationContract {
    /// Reads the `contract` of a `run` record.
    pub fn read(value: &Value) -> Option<DelegationContract> {
        let allowed = value.get("allowed");
        let list = |name: &str| {
            let allowed = allowed.filter(|allowed| allowed.get(name).is_some())?;
            Some(form::texts(allowed, name))
        };
        Some(DelegationContract {
            id: form::text(value, "id")?,
            tools: list("tools"),
            files: list("files"),
            deliverables: form::texts(value, "deliverables"),
            written: value.clone(),
        })
    }

    /// Whether a call is in its scope: the tool, and each file that `params.path` and `params.paths` name.
    pub fn permits(&self, action: &Value) -> bool {
        let tool = action.get("tool").and_then(Value::as_str);
        let is_tool = |tools: &Vec<Arc<str>>| tool.is_some_and(|tool| tools.iter().any(|one| &**one == tool));
        if !self.tools.as_ref().is_none_or(is_tool) {
            return false;
        }
        let Some(files) = &self.files else { return true };
        let params = action.get("params");
        let named = |name: &str| params.and_then(|params| params.get(name));
        let is_in = |value: &Value| {
            value.as_str().is_some_and(|path| files.iter().any(|pattern| is_file_in(pattern, path)))
        };
        // A path that is no text names nothing that a pattern could hold.
        [named("path"), named("paths")].into_iter().flatten().all(|value| match value {
            Value::Array(paths) => paths.iter().all(is_in),
            Value::Null => true,
            value => is_in(value),
        })
    }
}

/// Whether a pattern holds a path. `*` is any part of one name, `**` any number of names. A path with `..` is held by none: where it
/// leads is not in its text.
fn is_file_in(pattern: &str, path: &str) -> bool {
    fn names(text: &str) -> Vec<&str> {
        text.split('/')
            .enumerate()
            .filter(|(at, name)| *name != "." && (*at == 0 || !name.is_empty()))
            .map(|(_, name)| name)
            .collect()
    }
    fn is_held(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => {
                is_held(rest, path) || path.split_first().is_some_and(|(_, below)| is_held(pattern, below))
            }
            (Some((first, pattern)), Some((name, path))) => is_name(first, name) && is_held(pattern, path),
            _ => false,
        }
    }
    let (pattern, path) = (names(pattern), names(path));
    !path.contains(&"..") && !path.iter().any(|name| name.contains('\\')) && is_held(&pattern, &path)
}

/// Whether a pattern with `*` holds a name.
fn is_name(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = pattern.contains('*').then(|| parts.next_back()).flatten() else {
        return rest.is_empty();
    };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    parts.all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use dendrer_object::json;

    use super::*;

    #[test]
    fn patterns_hold_files_below_and_no_others() {
        for (pattern, path, is_in) in [
            ("src/serializer/*", "src/serializer/a.py", true),
            ("src/serializer/*", "./src//serializer/a.py", true),
            ("src/serializer/*", "src/serializer/deep/a.py", false),
            ("src/serializer/*", "src/serializer/../auth/a.py", false),
            ("src/serializer/*", "src/auth/a.py", false),
            ("src/serializer/*", "/src/serializer/a.py", false),
            ("src/**", "src/a/b/c", true),
            ("src/**", "src", true),
            ("**", "a/../b", false),
            ("*.py", "a.py", true),
            ("*.py", "a.pyc", false),
            ("a*b*c", "a1b2c", true),
            ("a*a", "a", false),
            ("*", "a\\b", false),
            ("a", "a", true),
            ("a", "b", false),
        ] {
            assert_eq!(is_file_in(pattern, path), is_in, "{pattern} {path}");
        }
    }

    #[test]
    fn a_call_is_in_scope_by_tool_and_files() {
        let value = |text: &str| json::parse_door(text.as_bytes()).unwrap();
        let contract = r#"{"id":"D","allowed":{"tools":["read","patch"],"files":["src/*"]}}"#;
        let contract = DelegationContract::read(&value(contract)).unwrap();
        for (action, is_in) in [
            (r#"{"tool":"read","params":{"path":"src/a"}}"#, true),
            (r#"{"tool":"read"}"#, true),
            (r#"{"tool":"rm","params":{"path":"src/a"}}"#, false),
            (r#"{"tool":"patch","params":{"paths":["src/a","auth/b"]}}"#, false),
            (r#"{"tool":"patch","params":{"path":7}}"#, false),
            (r#"{"params":{"path":"src/a"}}"#, false),
        ] {
            assert_eq!(contract.permits(&value(action)), is_in, "{action}");
        }
    }
}
