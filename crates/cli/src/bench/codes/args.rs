//! The command line of `bench codes`.

use anabranch_policy::PolicySpec;
use anabranch_types::Probability;
use clap::Args;

const HELP: &str = "\
Each block's symbols are lost at random; the receiver is given what arrives, in order, by the code that connections run. A
block is sent with as many repairs as make up for the expected loss, then one at a time until it is recovered.

  encode    bytes of the block, over the time of making those repairs
  decode    the same, over all time that the receiver spends on the block
  x copy    that speed over the speed of copying the block, in the same round: it hardly depends on the machine
  beyond F  symbols that arrived beyond the block's F sources until it was recovered: mean, and most of any block
  last      time that the receiver spends on the last symbol
  held      bytes of symbols that the receiver keeps for the block, without what a decoder keeps beside them

All speeds are medians over the blocks. A code that cannot have such blocks, or runs out of repairs, is left out.

Examples:
  anabranch bench codes
  anabranch bench codes raptorq reed-solomon --sources 64 --loss 5%,20%
  anabranch bench codes --sources 24,1000 --symbol 1200 --blocks 100 --json

Exit codes: 0 done, 1 failed, 2 usage error";

/// Options of `bench codes`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct CodesArgs {
    /// The codes, with options as in lt:sources=100; all that have repairs if left out: `anabranch policies code`
    #[arg(value_name = "CODE")]
    pub codes: Vec<PolicySpec>,
    /// Source symbols of a block
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "24,64,256,1000",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sources: Vec<u16>,
    /// Bytes of a symbol
    #[arg(long, value_name = "BYTES", default_value_t = 1400,
        value_parser = clap::value_parser!(u16).range(8..=9000))]
    pub symbol: u16,
    /// Share of the symbols that is lost, below 90 %
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "10%", value_parser = loss)]
    pub loss: Vec<f64>,
    /// Blocks of each kind
    #[arg(long, value_name = "COUNT", default_value_t = 40,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub blocks: u32,
    /// Which symbols are lost
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Reads `10%` or `0.1`.
fn loss(text: &str) -> Result<f64, String> {
    text.parse::<Probability>()
        .ok()
        .map(Probability::get)
        .filter(|share| (0.0..0.9).contains(share))
        .ok_or_else(|| "write a share from 0 to below 0.9, such as 10% or 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_shares_below_nine_tenths() {
        assert_eq!((loss("10%"), loss(" 0.25 ")), (Ok(0.1), Ok(0.25)));
        for bad in ["", "1", "90%", "-1%", "NaN", "all"] {
            assert!(loss(bad).is_err(), "{bad}");
        }
    }
}
