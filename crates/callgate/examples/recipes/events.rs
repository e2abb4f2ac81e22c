//! Events: the host follows a run's calls and output.

use std::error::Error;

use callgate::{Event, GateBuilder, Rules, RunRequest};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let rules = Rules::builder().allow("ticketing_*").build()?;
    let gate = builder.rules(rules).build().await?;
    let script = "await ticketing_createIssue({ title: 'x' }); console.log('done')";
    let request = RunRequest::new(script).on_event(|event| match event {
        Event::CallStarted { function, .. } => println!("{function} …"),
        Event::CallEnded { function, end, .. } => println!("{function}: {end:?}"),
        Event::Printed {
            text,
            is_error: true,
        } => eprint!("{text}"),
        Event::Printed { text, .. } => print!("{text}"),
        _ => {}
    });
    gate.run(request).await;
    gate.shutdown().await;
    Ok(())
}
