package capture

import (
	"slices"
	"sort"
)

// blockPieces is how many pieces a block has at most: so many are moved where one is put between others.
const blockPieces = 256

// An ahead is pieces in order, without overlap. They are in blocks, so that one that comes anywhere among many
// moves few of them.
type ahead struct {
	blocks [][]piece // none of them is empty
}

// A place is where a piece is in an ahead.
type place struct{ block, index int }

func (a *ahead) empty() bool { return len(a.blocks) == 0 }

// first is the piece with the lowest offset, of those there are.
func (a *ahead) first() *piece { return &a.blocks[0][0] }

// search returns the place of the first piece that ends after an offset. Mostly that is behind all of them, or
// the last.
func (a *ahead) search(offset uint64) place {
	n := len(a.blocks)
	if n == 0 {
		return place{}
	}
	if last := a.blocks[n-1]; last[len(last)-1].endOffset() <= offset {
		return place{n, 0}
	}
	block := sort.Search(n, func(i int) bool {
		b := a.blocks[i]
		return b[len(b)-1].endOffset() > offset
	})
	b := a.blocks[block]
	return place{block, sort.Search(len(b), func(i int) bool { return b[i].endOffset() > offset })}
}

// at returns the piece at a place, nil behind the last one.
func (a *ahead) at(p place) *piece {
	if p.block == len(a.blocks) {
		return nil
	}
	return &a.blocks[p.block][p.index]
}

// after returns the place of the next piece.
func (a *ahead) after(p place) place {
	if p.index++; p.index == len(a.blocks[p.block]) {
		return place{p.block + 1, 0}
	}
	return p
}

// insert puts in a piece that overlaps none of the others.
func (a *ahead) insert(p piece) {
	at := a.search(p.Offset)
	if at.block > 0 && at.index == 0 { // the block before has room at its end, if any
		at.block--
		at.index = len(a.blocks[at.block])
	}
	if len(a.blocks) == 0 {
		a.blocks = [][]piece{nil}
	}
	b := slices.Insert(a.blocks[at.block], at.index, p)
	a.blocks[at.block] = b
	if len(b) > blockPieces {
		half := len(b) / 2
		rest := append(make([]piece, 0, blockPieces+1), b[half:]...)
		clear(b[half:])
		a.blocks[at.block] = b[:half]
		a.blocks = slices.Insert(a.blocks, at.block+1, rest)
	}
}

// pop takes out the first piece.
func (a *ahead) pop() piece {
	b := a.blocks[0]
	p := b[0]
	b[0] = piece{}
	if a.blocks[0] = b[1:]; len(b) == 1 {
		if a.blocks = a.blocks[1:]; len(a.blocks) == 0 {
			a.blocks = nil
		}
	}
	return p
}
