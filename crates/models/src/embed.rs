//! Vectors of texts, by an OpenAI-compatible `/embeddings`.

use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::error::ModelError;

/// Texts of one request.
const BATCH: usize = 64;
/// Maximum bytes of an answer: 64 vectors of 16,384 numbers of 20 bytes.
const MAX_ANSWER: usize = 24 << 20;
const MAX_DIMENSIONS: usize = 16_384;

/// Computes vectors of texts.
#[derive(Debug, Clone)]
pub struct Embedder {
    endpoint: Endpoint,
    model: String,
    dimensions: Option<usize>,
}

impl Embedder {
    /// With `dimensions`, the endpoint is asked for vectors of this length, and others are refused.
    pub fn new(endpoint: Endpoint, model: impl Into<String>, dimensions: Option<usize>) -> Self {
        Self {
            endpoint,
            model: model.into(),
            dimensions,
        }
    }

    /// The settings that determine vectors: vectors of two embedders are comparable if it is equal.
    pub fn identity(&self) -> String {
        let dimensions = self.dimensions.unwrap_or_default();
        format!("{}\n{}\n{dimensions}", self.endpoint.url(), self.model)
    }

    /// The vectors of these texts, in their order, normalised and with equal dimensions.
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
            let answer = self.endpoint.post("/embeddings", &body, MAX_ANSWER).await?;
            let read = read(&answer, batch.len(), &mut dimensions);
            vectors.extend(read.map_err(|fault| self.endpoint.malformed(&fault))?);
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
    let data = answer["data"].as_array();
    let data = data.ok_or("has no list of vectors in \"data\"")?;
    if data.len() != count {
        let got = data.len();
        return Err(format!("has {got} vectors for {count} texts"));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, entry) in data.iter().enumerate() {
        // Some endpoints omit it and keep the order.
        let index = match entry.get("index") {
            None => place as u64,
            Some(index) => index
                .as_u64()
                .ok_or("has a vector whose \"index\" is not a number")?,
        };
        let vector = vector(&entry["embedding"], dimensions)?;
        let free = usize::try_from(index)
            .ok()
            .and_then(|at| vectors.get_mut(at));
        let free = free.ok_or_else(|| format!("has a vector with index {index} of {count}"))?;
        if free.replace(vector).is_some() {
            return Err(format!("has two vectors with index {index}"));
        }
    }
    // All places are filled: there are as many vectors as places, and no two in one place.
    Ok(vectors.into_iter().flatten().collect())
}

fn vector(numbers: &Value, dimensions: &mut Option<usize>) -> Result<Vec<f32>, String> {
    let numbers = numbers.as_array();
    let numbers = numbers.ok_or("has an \"embedding\" that is not a list of numbers")?;
    let (got, wanted) = (numbers.len(), *dimensions.get_or_insert(numbers.len()));
    if got != wanted || wanted == 0 || wanted > MAX_DIMENSIONS {
        return Err(format!(
            "has a vector of {got} numbers in place of {wanted} (at most {MAX_DIMENSIONS})"
        ));
    }
    let number = |number: &Value| number.as_f64().filter(|it| it.abs() <= f64::from(f32::MAX));
    let vector: Option<Vec<f64>> = numbers.iter().map(number).collect();
    let vector = vector.ok_or("has a vector with an element that is not a number")?;
    let length = vector.iter().map(|number| number * number).sum::<f64>();
    let length = length.sqrt();
    if !(length.is_finite() && length > 0.0) {
        return Err("has a vector without a direction".to_owned());
    }
    let vector = vector.into_iter().map(|number| (number / length) as f32);
    Ok(vector.collect())
}
