# Shortcuts; each calls `cargo xtask`, which is all that is needed.

# List the recipes.
default:
    @just --list

# Check the tools and put V8 in place.
setup *ARGS:
    cargo xtask setup {{ARGS}}

# Run a script against two demo MCP servers.
demo *ARGS:
    cargo xtask demo {{ARGS}}

# Set up, build, run every test.
test *ARGS:
    cargo xtask test -- {{ARGS}}

# Run the official conformance suite against our client and our server.
conformance *ARGS:
    cargo xtask conformance -- {{ARGS}}

# Run the benchmarks.
bench *ARGS:
    cargo xtask bench -- {{ARGS}}

# Build the V8 archive from source (hours).
v8 *ARGS:
    cargo xtask v8 {{ARGS}}

# Everything a change must pass.
ci:
    .ci/run
