//! Vectors of texts, by an OpenAI-compatible `/embeddings`.

use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::error::{ErrorKind, ModelError};

/// Texts of one request.
const BATCH: usize = 64;
/// The most bytes of an answer: 64 vectors of 16,384 numbers of 20 bytes.
const MAX_ANSWER: usize = 24 << 20;
/// The most numbers of a vector.
const MAX_DIMENSIONS: usize = 16_384;

/// Makes vectors of texts.
#[derive(Debug, Clone)]
pub struct Embedder {
    endpoint: Endpoint,
    model: String,
    dimensions: Option<usize>,
}

impl Embedder {
    /// By this model. With `dimensions`, the endpoint is asked for vectors of so
    /// many numbers, and others are refused.
    pub fn new(endpoint: Endpoint, model: impl Into<String>, dimensions: Option<usize>) -> Self {
        Self {
            endpoint,
            model: model.into(),
            dimensions,
        }
    }

    /// What vectors depend on: those of two embedders compare if this is equal.
    pub fn identity(&self) -> String {
        let dimensions = self.dimensions.unwrap_or_default();
        format!("{}\n{}\n{dimensions}", self.endpoint.url(), self.model)
    }

    /// The vectors of these texts, in their order, each of length 1 and all with
    /// equally many numbers.
    /// The error: [`ModelError`]; of some texts there are no vectors then, and so of none.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut dimensions = self.dimensions;
        for batch in texts.chunks(BATCH) {
            let mut body = json!({
                "model": self.model,
                "input": batch,
                "encoding_format": "float",
            });
            if let Some(dimensions) = self.dimensions {
                body["dimensions"] = dimensions.into();
            }
            let headers = self.endpoint.bearer();
            let posted = self
                .endpoint
                .post("/embeddings", &headers, &body, MAX_ANSWER);
            let answer = posted.await?;
            let read = read(&answer, batch.len(), &mut dimensions);
            vectors.extend(read.map_err(|what| self.endpoint.error(ErrorKind::Malformed, what))?);
        }
        Ok(vectors)
    }
}

/// The vectors of an answer, by their `index`.
fn read(
    answer: &Value,
    count: usize,
    dimensions: &mut Option<usize>,
) -> Result<Vec<Vec<f32>>, String> {
    let Some(data) = answer.get("data").and_then(Value::as_array) else {
        return Err("the answer has no list of vectors in \"data\"".to_owned());
    };
    if data.len() != count {
        let got = data.len();
        return Err(format!("the answer has {got} vectors for {count} texts"));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, entry) in data.iter().enumerate() {
        // Some endpoints leave it out and keep the order.
        let index = match entry.get("index") {
            None => place,
            Some(index) => index
                .as_u64()
                .and_then(|index| usize::try_from(index).ok())
                .ok_or_else(|| {
                    "the answer has a vector whose \"index\" is not a number".to_owned()
                })?,
        };
        let vector = vector(entry.get("embedding"), dimensions)?;
        match vectors.get_mut(index) {
            Some(free @ None) => *free = Some(vector),
            Some(Some(_)) => return Err(format!("the answer has two vectors with index {index}")),
            None => {
                return Err(format!(
                    "the answer has a vector with index {index} of {count}"
                ));
            }
        }
    }
    // As many as there are places, and no two in one.
    Ok(vectors.into_iter().flatten().collect())
}

fn vector(numbers: Option<&Value>, dimensions: &mut Option<usize>) -> Result<Vec<f32>, String> {
    let Some(numbers) = numbers.and_then(Value::as_array) else {
        return Err("the answer has an \"embedding\" that is not a list of numbers".to_owned());
    };
    let wanted = *dimensions.get_or_insert(numbers.len());
    if numbers.len() != wanted || wanted == 0 || wanted > MAX_DIMENSIONS {
        let got = numbers.len();
        return Err(format!(
            "the answer has a vector of {got} numbers in place of {wanted} (at most \
             {MAX_DIMENSIONS})"
        ));
    }
    let mut vector = Vec::with_capacity(wanted);
    for number in numbers {
        match number.as_f64() {
            Some(number) if number.abs() <= f64::from(f32::MAX) => vector.push(number),
            _ => {
                return Err(
                    "the answer has a vector with something that is not a number".to_owned(),
                );
            }
        }
    }
    let length = vector
        .iter()
        .map(|number| number * number)
        .sum::<f64>()
        .sqrt();
    if !(length.is_finite() && length > 0.0) {
        return Err("the answer has a vector without a direction".to_owned());
    }
    Ok(vector
        .into_iter()
        .map(|number| (number / length) as f32)
        .collect())
}
