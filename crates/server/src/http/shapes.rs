//! Names for what makers of clients would otherwise have to name themselves. The document as the routes give it is right, but says some things
//! in place that have a name elsewhere; a client made from it had a class for the items of each list, and variants called `Type0` to
//! `Type7`. Knows the document and nothing of what it describes.

use std::collections::BTreeMap;

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ArrayItems, Discriminator, Object, Schema, SchemaType, Type};
use utoipa::openapi::{OpenApi, Ref, RefOr};

use super::routes::operations;

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Puts names into the document, in the places that have none.
pub(super) fn name_all(document: &mut OpenApi) {
    let Some(components) = &mut document.components else {
        return;
    };
    name_items(&mut components.schemas);
    name_variants(&mut components.schemas);
    let words = words(&components.schemas);
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        simplify_parameters(operation, &words);
        simplify_body(operation);
    }
}

/// What a page holds has a name of its own.
fn name_items(schemas: &mut Schemas) {
    let known = schemas.clone();
    for schema in schemas.values_mut() {
        let RefOr::T(Schema::Object(page)) = schema else {
            continue;
        };
        for property in page.properties.values_mut() {
            if let RefOr::T(Schema::Array(array)) = property
                && let ArrayItems::RefOrSchema(items) = &mut array.items
                && let RefOr::T(Schema::Object(object)) = &**items
                && !object.properties.is_empty()
                && let Some((name, _)) = known.iter().find(|(_, known)| **known == **items)
            {
                **items = Ref::from_schema_name(name).into();
            }
        }
    }
}

/// The variants of a choice by one word get names made of both, and whoever reads is told by which property to choose.
fn name_variants(schemas: &mut Schemas) {
    let mut variants = Schemas::new();
    for (name, schema) in schemas.iter_mut() {
        let RefOr::T(Schema::OneOf(choice)) = schema else {
            continue;
        };
        let Some((property, words)) = tag(&choice.items) else {
            continue;
        };
        let mut mapping = Vec::new();
        for (item, word) in choice.items.iter_mut().zip(words) {
            let variant = format!("{name}{}", camel(&word));
            let reference = Ref::from_schema_name(&variant);
            mapping.push((word, reference.ref_location.clone()));
            let shape = std::mem::replace(item, reference.into());
            variants.insert(variant, shape);
        }
        choice.discriminator = Some(Discriminator::with_mapping(property, mapping));
    }
    schemas.extend(variants);
}

/// The property by which the variants differ, if each says its own word there.
fn tag(variants: &[RefOr<Schema>]) -> Option<(String, Vec<String>)> {
    let RefOr::T(Schema::Object(first)) = variants.first()? else {
        return None;
    };
    first.properties.keys().find_map(|property| {
        let words: Option<Vec<String>> = variants
            .iter()
            .map(|variant| only_word(variant, property))
            .collect();
        Some((property.clone(), words?))
    })
}

fn only_word(variant: &RefOr<Schema>, property: &str) -> Option<String> {
    let RefOr::T(Schema::Object(object)) = variant else {
        return None;
    };
    let RefOr::T(Schema::Object(value)) = object.properties.get(property)? else {
        return None;
    };
    match value.enum_values.as_deref()? {
        [word] => word.as_str().map(str::to_owned),
        _ => None,
    }
}

/// `backing_off` as `BackingOff`.
fn camel(word: &str) -> String {
    let parts = word.split('_').filter_map(|part| {
        let mut letters = part.chars();
        Some(letters.next()?.to_uppercase().chain(letters).collect::<String>())
    });
    parts.collect()
}

/// The lists of words that have a name.
fn words(schemas: &Schemas) -> Vec<(Vec<serde_json::Value>, String)> {
    let named = schemas.iter().filter_map(|(name, schema)| match schema {
        RefOr::T(Schema::Object(Object {
            enum_values: Some(words),
            ..
        })) => Some((words.clone(), name.clone())),
        _ => None,
    });
    named.collect()
}

/// A parameter is there or left out, never null; and its words have a name where they have one elsewhere.
fn simplify_parameters(operation: &mut Operation, words: &[(Vec<serde_json::Value>, String)]) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else {
            continue;
        };
        match &mut parameter.schema {
            // One that takes several.
            Some(RefOr::T(Schema::Array(array))) => {
                if let ArrayItems::RefOrSchema(items) = &mut array.items {
                    simplify_value(items, words);
                }
            }
            Some(value) => simplify_value(value, words),
            None => {}
        }
    }
}

fn simplify_value(value: &mut RefOr<Schema>, words: &[(Vec<serde_json::Value>, String)]) {
    let RefOr::T(Schema::Object(schema)) = value else {
        return;
    };
    if let SchemaType::Array(types) = &mut schema.schema_type {
        types.retain(|kind| *kind != Type::Null);
        if let [only] = types.as_slice() {
            schema.schema_type = SchemaType::Type(only.clone());
        }
    }
    let named = |(list, _): &&(Vec<serde_json::Value>, String)| Some(list) == schema.enum_values.as_ref();
    if let Some((_, name)) = words.iter().find(named) {
        *value = Ref::from_schema_name(name).into();
    }
}

/// A body that may be left out is left out, and not null.
fn simplify_body(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else {
        return;
    };
    for content in body.content.values_mut() {
        let RefOr::T(content) = content else {
            continue;
        };
        if let Some(RefOr::T(Schema::OneOf(choice))) = &content.schema
            && let [reference @ RefOr::Ref(_), RefOr::T(Schema::Object(other))] = choice.items.as_slice()
            && other.schema_type == SchemaType::Type(Type::Null)
        {
            content.schema = Some(reference.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn document() -> Value {
        serde_json::to_value(super::super::document()).unwrap()
    }

    #[test]
    fn what_a_list_holds_and_the_variants_of_a_choice_have_names() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let mut unnamed = Vec::new();
        for (name, schema) in schemas.as_object().unwrap() {
            for (property, shape) in schema["properties"].as_object().into_iter().flatten() {
                if shape["items"]["properties"].is_object() {
                    unnamed.push(format!("{name}.{property}"));
                }
            }
            let variants = schema["oneOf"].as_array().into_iter().flatten();
            if variants.clone().any(|variant| variant["properties"].is_object()) {
                unnamed.push(name.clone());
            }
        }
        assert!(unnamed.is_empty(), "{unnamed:?}");
        assert_eq!(
            schemas["Page_QueueItem"]["properties"]["items"]["items"],
            json!({"$ref": "#/components/schemas/QueueItem"})
        );
        let obstacle = &schemas["Obstacle"]["discriminator"];
        assert_eq!(obstacle["propertyName"], "reason");
        assert_eq!(
            obstacle["mapping"]["no_worker"],
            "#/components/schemas/ObstacleNoWorker"
        );
        assert!(schemas["ObstacleNoWorker"]["properties"].is_object());
    }

    /// Where the document refers to what it does not hold.
    fn lost(document: &Value, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
                    && document.pointer(&reference[1..]).is_none()
                {
                    found.push(reference.to_owned());
                }
                fields.values().for_each(|value| lost(document, value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| lost(document, value, found)),
            _ => {}
        }
    }

    #[test]
    fn whatever_the_document_refers_to_is_in_it() {
        let (document, mut found) = (document(), Vec::new());
        lost(&document, &document, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn parameters_and_bodies_are_there_or_left_out_and_never_null() {
        let document = document();
        let (mut parameters, mut bodies) = (0, 0);
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    parameters += 1;
                    assert!(
                        !parameter["schema"]["type"].is_array(),
                        "{method} {path}: {parameter}"
                    );
                }
                if let Some(body) = operation["requestBody"]["content"]["application/json"].as_object() {
                    bodies += 1;
                    assert!(
                        body["schema"]["$ref"].is_string(),
                        "{method} {path} has no name for its body: {body:?}"
                    );
                }
            }
        }
        assert!(parameters > 50 && bodies > 20, "{parameters}, {bodies}");
        let status = &document["paths"]["/v1/queue"]["get"]["parameters"];
        let status = status
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "status");
        assert_eq!(
            status.unwrap()["schema"]["items"],
            json!({"$ref": "#/components/schemas/ItemStatus"})
        );
    }
}
