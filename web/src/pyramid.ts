// The least and the most of any stretch of a series, and where the most is: what a pixel has to show, at every zoom.
//
// Blocks of 64 values, blocks of 64 blocks, and so on. A stretch is walked value by value to the next block's edge,
// block by block to the next larger one's, and back down: at most 126 steps a level.

const BLOCK = 64;

export interface Extent {
  least: number;
  most: number;
  mostAt: number;
}

interface Level {
  least: Float64Array;
  most: Float64Array;
  mostAt: Int32Array;
}

export class Pyramid {
  private readonly levels: Level[] = [];

  constructor(private readonly values: Float64Array) {
    let count = values.length;
    let below: Level | null = null;
    while (count > BLOCK) {
      const blocks = Math.ceil(count / BLOCK);
      const level: Level = {
        least: new Float64Array(blocks),
        most: new Float64Array(blocks),
        mostAt: new Int32Array(blocks),
      };
      for (let block = 0; block < blocks; block++) {
        const end = Math.min((block + 1) * BLOCK, count);
        let least = Infinity;
        let most = -Infinity;
        let mostAt = block * BLOCK;
        for (let i = block * BLOCK; i < end; i++) {
          const low = below ? below.least[i] : values[i];
          const high = below ? below.most[i] : values[i];
          if (low < least) least = low;
          if (high > most) {
            most = high;
            mostAt = below ? below.mostAt[i] : i;
          }
        }
        level.least[block] = least;
        level.most[block] = most;
        level.mostAt[block] = mostAt;
      }
      this.levels.push(level);
      below = level;
      count = blocks;
    }
  }

  /** Of values [begin, end), which must not be empty; the first place where the most is reached. */
  extent(begin: number, end: number, into: Extent): void {
    into.least = Infinity;
    into.most = -Infinity;
    into.mostAt = begin;
    this.walk(-1, begin, end, into);
  }

  /** Units of a level (-1: values themselves), from left to right, so that the first of equal ones wins. */
  private walk(level: number, begin: number, end: number, into: Extent): void {
    const above = level + 1 < this.levels.length ? level + 1 : null;
    const firstBlock = Math.ceil(begin / BLOCK);
    const lastBlock = Math.floor(end / BLOCK);
    if (above === null || lastBlock <= firstBlock) {
      this.scan(level, begin, end, into);
      return;
    }
    this.scan(level, begin, firstBlock * BLOCK, into);
    this.walk(above, firstBlock, lastBlock, into);
    this.scan(level, lastBlock * BLOCK, end, into);
  }

  private scan(level: number, begin: number, end: number, into: Extent): void {
    const at = level < 0 ? null : this.levels[level];
    const low = at ? at.least : this.values;
    const high = at ? at.most : this.values;
    for (let i = begin; i < end; i++) {
      if (low[i] < into.least) into.least = low[i];
      if (high[i] > into.most) {
        into.most = high[i];
        into.mostAt = at ? at.mostAt[i] : i;
      }
    }
  }
}
