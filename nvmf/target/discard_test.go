package target_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// A ledger is a disk that notes what is discarded, as blocks of 512 bytes: the first, and how many.
type ledger struct {
	*Memory
	mu   sync.Mutex
	done [][2]int64
}

func (l *ledger) Discard(off, n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, [2]int64{off / 512, n / 512})
	return nil
}

// TestDiscardsOnce has a command name blocks many times: each is discarded once, so that no command costs more than one
// for the whole disk.
func TestDiscardsOnce(t *testing.T) {
	type ranges []capsule.Range
	whole := slices.Repeat(ranges{{LBA: 0, Blocks: 8192}}, capsule.MaxRanges)
	for name, c := range map[string]struct {
		ranges ranges
		want   [][2]int64
	}{
		"the whole disk": {whole, [][2]int64{{0, 8192}}},
		"out of order": {ranges{{LBA: 100, Blocks: 10}, {LBA: 50, Blocks: 1}, {LBA: 105, Blocks: 20}},
			[][2]int64{{50, 1}, {100, 25}}},
		"one within another": {ranges{{LBA: 8, Blocks: 100}, {LBA: 9, Blocks: 1},
			{LBA: 107, Blocks: 1}}, [][2]int64{{8, 100}}},
		"next to each other": {ranges{{LBA: 10, Blocks: 5}, {LBA: 15, Blocks: 5}, {LBA: 21, Blocks: 5}},
			[][2]int64{{10, 10}, {21, 5}}},
		"to the end": {ranges{{LBA: 8191, Blocks: 1}, {LBA: 8192}, {LBA: 3}}, [][2]int64{{8191, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			memory, err := NewMemory(4<<20, 512)
			must(t, err)
			disk := &ledger{Memory: memory}
			r := newRig(t, func(cfg *Config) { cfg.Namespaces = []Namespace{{Backend: disk}} })
			w := r.io(r.admin(), 1, 8)
			var data []byte
			for _, one := range c.ranges {
				data = one.Append(data)
			}
			d := capsule.DatasetManagement{SGL: w.put(data, 0), NSID: 1, Ranges: len(c.ranges), Deallocate: true}
			w.want(capsule.Success, d.Command(), nil)
			if !slices.Equal(disk.done, c.want) {
				t.Errorf("%v are discarded, and not %v", disk.done, c.want)
			}
		})
	}
}
