//! Query parameters: only those a route lists, each once (PA §9.2).
//!
//! [`read`] runs before a handler looks anything up. Never in this module: a value in
//! a refusal; a parameter is named only if the route lists it.

use std::collections::BTreeMap;

use bronzeward_api::id;
use bronzeward_api::routes::{Parameter, Route};
use bronzeward_core::problem::{Problem, ProblemCode};

/// The length of a page that asks for none, and the longest.
pub const DEFAULT_LIMIT: u16 = 50;
pub const MAX_LIMIT: u16 = 500;
/// The most identifiers one read resolves.
pub const MAX_IDENTIFIERS: usize = 100;

/// A route's query, checked against its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Filters and choices that were given and are not empty.
    values: BTreeMap<&'static str, String>,
    /// The values of the repeating parameter, distinct, in the order first given.
    pub identifiers: Vec<String>,
    pub limit: u16,
    /// The cursor's text; [`crate::cursor`] reads it.
    pub cursor: Option<String>,
}

impl Query {
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The filters, by name: what a cursor belongs to.
    pub fn filters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
    }
}

fn refused(words: &'static str, parameter: &'static str) -> Problem {
    Problem::invalid_request(words).naming("parameter", parameter)
}

/// Reads a request's query for `route`.
pub fn read(route: &Route, query: Option<&str>) -> Result<Query, Problem> {
    let mut read = Query {
        values: BTreeMap::new(),
        identifiers: Vec::new(),
        limit: DEFAULT_LIMIT,
        cursor: None,
    };
    let mut seen: Vec<&'static str> = Vec::new();
    let mut repeats = 0_usize;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let listed = route
            .parameters
            .iter()
            .find(|parameter| parameter.name() == name);
        let known = match (&*name, listed) {
            (_, Some(parameter)) => parameter.name(),
            ("limit", None) if route.paginated => "limit",
            ("cursor", None) if route.paginated => "cursor",
            _ => {
                return Err(Problem::invalid_request(
                    "The route does not list a query parameter that was sent.",
                ));
            }
        };
        let many = matches!(listed, Some(Parameter::Identifiers(..)));
        if !many && seen.contains(&known) {
            return Err(refused("A query parameter is given more than once.", known));
        }
        seen.push(known);
        match listed {
            Some(Parameter::Identifiers(_, prefixes)) => {
                repeats += 1;
                if repeats > MAX_IDENTIFIERS || !identifier(&value, prefixes) {
                    return Err(refused("It takes 1 to 100 identifiers.", known));
                }
                if !read.identifiers.iter().any(|one| *one == value) {
                    read.identifiers.push(value.into_owned());
                }
            }
            Some(parameter) => {
                if let Some(value) = filter(*parameter, &value)? {
                    read.values.insert(known, value);
                }
            }
            None if known == "limit" => read.limit = limit(&value)?,
            None => read.cursor = Some(cursor(value.into_owned())?),
        }
    }
    let asks = route
        .parameters
        .iter()
        .find_map(|parameter| match parameter {
            Parameter::Identifiers(name, _) => Some(*name),
            Parameter::Identifier(..) | Parameter::OneOf(..) | Parameter::Choice(..) => None,
        });
    match asks {
        Some(name) if read.identifiers.is_empty() => {
            Err(refused("It takes 1 to 100 identifiers.", name))
        }
        _ => Ok(read),
    }
}

fn filter(parameter: Parameter, value: &str) -> Result<Option<String>, Problem> {
    let (name, fits) = match parameter {
        Parameter::Identifier(name, prefixes) => {
            (name, value.is_empty() || identifier(value, prefixes))
        }
        Parameter::OneOf(name, values) => (name, value.is_empty() || values.contains(&value)),
        Parameter::Choice(name, values) => (name, values.contains(&value)),
        Parameter::Identifiers(name, prefixes) => (name, identifier(value, prefixes)),
    };
    if !fits {
        return Err(refused("A query parameter is not of its kind.", name));
    }
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

fn identifier(value: &str, prefixes: &[&str]) -> bool {
    id::is_identifier(value, prefixes)
}

fn limit(value: &str) -> Result<u16, Problem> {
    let refusal = || refused("A page has 1 to 500 items.", "limit");
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number: u16 = digits
        .then(|| value.parse().ok())
        .flatten()
        .ok_or_else(refusal)?;
    if (1..=MAX_LIMIT).contains(&number) {
        Ok(number)
    } else {
        Err(refusal())
    }
}

fn cursor(value: String) -> Result<String, Problem> {
    if value.is_empty() {
        return Err(refused("A cursor that is sent is not empty.", "cursor"));
    }
    Ok(value)
}

/// 400 `cursor-invalid`.
pub fn cursor_invalid() -> Problem {
    Problem::new(ProblemCode::CursorInvalid)
        .say("The cursor is not one of this collection, its filters, order and epoch.")
}
