//! Tests of the decoder, the encoder, frame heads and settings.

mod examples;
mod frames;
mod limits;
mod oracle;
mod speaker;
