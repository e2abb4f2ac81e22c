//! A search of the tools, and their TypeScript declarations.

use std::error::Error;

use callgate::settings::Detail;
use callgate::{GateBuilder, SearchRequest};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let gate = builder.build().await?;
    let found = gate.search(&SearchRequest::new("file a bug")).await?;
    for hit in &found.hits {
        let declaration = gate.declarations(Detail::Full, |function| function == hit.function);
        println!("{declaration}");
    }
    gate.shutdown().await;
    Ok(())
}
