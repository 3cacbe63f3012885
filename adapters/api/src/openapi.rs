//! The OpenAPI 3.1 document, made of the route table and the bodies' schemas
//! (PA §9.1).
//!
//! `http` serves [`document`]; `openapi.yaml` beside this crate is [`yaml`], printed
//! by the `openapi` example and held equal by a test. Never here: a fact about a
//! route that the table does not state.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::bodies::problem::Problem;
use crate::id;
use crate::routes::{self, Access, Parameter, Route, RouteId};

/// The whole document.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for route in routes::all() {
        let item = paths
            .entry(route.path)
            .or_insert_with(|| Value::Object(Map::new()));
        let operation = operation(route, &mut schemas);
        item[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    schemas.answers.subschema_for::<Problem>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bronzeward",
            "version": format!("1.{}", crate::API_REVISION),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Change control for Talos Linux clusters. Extension fields state \
                what the route table states: roles in the order that names an act, whether \
                automation is refused, whether If-Match is required, and what a process \
                started for recovery serves."
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "headers": headers(),
            "responses": {"Unauthenticated": problem(true), "Problem": problem(false)},
            "schemas": schemas.components(),
        },
    })
}

/// The document as the committed file has it.
pub fn yaml() -> String {
    let comment = "# Written by `cargo run -p bronzeward-api --example openapi`; do not edit.\n";
    format!("{comment}{}", crate::yaml::document(&document()))
}

/// Requests and answers differ in what they require, so each has a generator.
struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            requests: settings().for_deserialize().into_generator(),
            answers: settings().for_serialize().into_generator(),
        }
    }

    fn components(mut self) -> Value {
        let mut components = self.answers.take_definitions(true);
        for (name, schema) in self.requests.take_definitions(true) {
            // A shape used both ways must be one shape; a test reads `clashes`.
            components.entry(name).or_insert(schema);
        }
        Value::Object(components)
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = json!({
        "operationId": route.id.operation_id(),
        "parameters": parameters(route),
        "responses": responses(route, schemas),
        "x-bronzeward-access": access(route.access),
        "x-bronzeward-roles": route.access.roles().iter().map(|role| role.as_str()).collect::<Vec<_>>(),
        "x-bronzeward-human-only": route.human_only,
        "x-bronzeward-if-match": route.if_match,
        "x-bronzeward-start-mode": route.start.as_str(),
        "x-bronzeward-implemented": route.implemented,
    });
    if let Some(body) = route.request {
        operation["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": (body.schema)(&mut schemas.requests)}},
        });
    }
    if route.access == Access::Anonymous {
        operation["security"] = json!([]);
    }
    operation
}

fn access(access: Access) -> &'static str {
    match access {
        Access::Anonymous => "anonymous",
        Access::Credential => "credential",
        Access::AnyRole => "any-role",
        Access::Roles(_) => "roles",
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let mut parameters: Vec<Value> = route
        .path_parameters()
        .map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
        })
        .collect();
    parameters.extend(route.parameters.iter().map(|one| query(*one)));
    if route.paginated {
        parameters.push(json!({
            "name": "limit", "in": "query",
            "schema": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
        }));
        parameters.push(
            json!({"name": "cursor", "in": "query", "schema": {"type": "string", "minLength": 1}}),
        );
    }
    if route.mutates() {
        parameters.push(header("Idempotency-Key", true, "^[A-Za-z0-9_-]{16,128}$"));
        parameters.push(header(
            "Bronzeward-Expected-Epoch",
            false,
            &id::pattern(&["ep"]),
        ));
    }
    if route.if_match {
        parameters.push(header("If-Match", true, "^\"[^\"]+\"$"));
    }
    parameters
}

fn header(name: &str, required: bool, pattern: &str) -> Value {
    json!({
        "name": name, "in": "header", "required": required,
        "schema": {"type": "string", "pattern": pattern},
    })
}

fn query(parameter: Parameter) -> Value {
    let schema = match parameter {
        Parameter::Identifier(_, prefixes) => {
            json!({"type": "string", "pattern": format!("^$|{}", id::pattern(prefixes))})
        }
        Parameter::OneOf(_, values) => {
            let values: Vec<&str> = std::iter::once("").chain(values.iter().copied()).collect();
            json!({"type": "string", "enum": values})
        }
        Parameter::Choice(_, values) => json!({"type": "string", "enum": values}),
        Parameter::Identifiers(_, prefixes) => json!({
            "type": "array", "minItems": 1, "maxItems": 100,
            "items": {"type": "string", "pattern": id::pattern(prefixes)},
        }),
    };
    let many = matches!(parameter, Parameter::Identifiers(..));
    json!({"name": parameter.name(), "in": "query", "required": many, "schema": schema})
}

/// Headers answers share, by reference.
fn headers() -> Value {
    json!({
        "Bronzeward-Request-ID": {
            "required": true,
            "schema": {"type": "string", "pattern": id::pattern(&["req"])},
        },
        "Bronzeward-Epoch": {
            "description": "The epoch of the read that decided the answer; absent on a 401, on \
                a 403 identity-revoked and on a 503 whose state read failed.",
            "schema": {"type": "string", "pattern": id::pattern(&["ep"])},
        },
        "Bronzeward-Recovery-Mode": {
            "description": "Present while recovery mode was in effect in that read.",
            "schema": {"type": "string", "const": "true"},
        },
        "Idempotent-Replayed": {
            "description": "Present on a stored answer.",
            "schema": {"type": "string", "const": "true"},
        },
        "ETag": {"required": true, "schema": {"type": "string", "pattern": "^\"[0-9]+-[a-z2-7]{26}\"$"}},
        "Location": {"required": true, "schema": {"type": "string"}},
        "WWW-Authenticate": {"required": true, "schema": {"type": "string"}},
    })
}

fn refer(names: &[&str]) -> Value {
    let headers = names.iter().map(|name| {
        let target = format!("#/components/headers/{name}");
        ((*name).to_owned(), json!({ "$ref": target }))
    });
    Value::Object(headers.collect())
}

fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    let success = route.success;
    let mut names = Vec::new();
    if route.access != Access::Anonymous {
        names.extend([
            "Bronzeward-Request-ID",
            "Bronzeward-Epoch",
            "Bronzeward-Recovery-Mode",
        ]);
    }
    if route.mutates() {
        names.push("Idempotent-Replayed");
    }
    if success.etag {
        names.push("ETag");
    }
    if success.location {
        names.push("Location");
    }
    let mut answer = json!({"description": "Success.", "headers": refer(&names)});
    if let Some(body) = success.body {
        let schema = (body.schema)(&mut schemas.answers);
        answer["content"] = json!({"application/json": {"schema": schema}});
    } else if route.access != Access::Anonymous {
        answer["content"] = json!({"application/json": {"schema": {"type": "object"}}});
    }
    responses.insert(success.status.as_str().to_owned(), answer);
    for status in problem_statuses(route) {
        let name = if status == 401 {
            "Unauthenticated"
        } else {
            "Problem"
        };
        let target = format!("#/components/responses/{name}");
        responses.insert(status.to_string(), json!({ "$ref": target }));
    }
    Value::Object(responses)
}

/// The statuses PA §9.4 and §14 let a route of this shape answer with.
fn problem_statuses(route: &Route) -> Vec<u16> {
    if route.access == Access::Anonymous {
        return Vec::new();
    }
    // 409: any request can meet a recovery start before its entry.
    let mut statuses = vec![400, 401, 403, 404, 409, 500, 503];
    if route.mutates() {
        statuses.extend([412, 422, 428]);
    }
    // An ingestion can be asked for with a review, whose routes are not served yet.
    if !route.implemented || route.id == RouteId::StartIngestion {
        statuses.push(501);
    }
    statuses.sort_unstable();
    statuses
}

/// An answer that carries a problem: a 401 names its scheme and no epoch.
fn problem(unauthenticated: bool) -> Value {
    let mut names = vec!["Bronzeward-Request-ID"];
    if unauthenticated {
        names.push("WWW-Authenticate");
    } else {
        // A draft entry's refusal is stored and replayed too (PA §7.2).
        names.extend([
            "Bronzeward-Epoch",
            "Bronzeward-Recovery-Mode",
            "Idempotent-Replayed",
        ]);
    }
    json!({
        "description": "A problem (RFC 9457).",
        "headers": refer(&names),
        "content": {"application/problem+json": {
            "schema": {"$ref": "#/components/schemas/Problem"},
        }},
    })
}

/// Names two definitions share while differing: there must be none.
#[cfg(test)]
pub(crate) fn clashes() -> Vec<String> {
    let mut schemas = Schemas::new();
    for route in routes::all() {
        operation(route, &mut schemas);
    }
    let answers = schemas.answers.take_definitions(true);
    let requests = schemas.requests.take_definitions(true);
    requests
        .into_iter()
        .filter(|(name, schema)| answers.get(name).is_some_and(|other| other != schema))
        .map(|(name, _)| name)
        .collect()
}
