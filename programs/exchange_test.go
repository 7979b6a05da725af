//go:build linux && interposer

package programs

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// An exchange is what rstream and riostream do, by their options.
type exchange struct{ testrig.Rstream }

func (x *exchange) parse(t *testing.T, options string) {
	t.Helper()
	words := strings.Fields(options)
	for i, word := range words {
		if word == "-S" || word == "-C" {
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				t.Fatal(err)
			}
			*map[string]*int{"-S": &x.Size, "-C": &x.Count}[word] = n
		}
	}
}

// swap is what the ends of riostream do with -C 1 beside greeting each other: they write into each other's memory by turns, of which the last octet
// counts the turns, and the others count up. They need no message: each looks at its last octet. The client has the first turn.
func (x *exchange) swap(conn *stream.Conn, mine *stream.Mapping, first bool, iterations int) error {
	var up [2]byte // what the next octet is, of the peer's and of ours
	for turn := range 2 * iterations {
		if (turn%2 == 0) == first {
			if _, err := conn.WriteAt(append(counting(&up[1], x.Size-1), byte(turn)), 0); err != nil {
				return fmt.Errorf("turn %d: %w", turn, err)
			}
			continue
		}
		got := make([]byte, x.Size)
		for got[x.Size-1] = byte(turn) + 1; got[x.Size-1] != byte(turn); {
			if _, err := mine.ReadAt(got, 0); err != nil {
				return err
			}
			runtime.Gosched()
		}
		if !bytes.Equal(got[:x.Size-1], counting(&up[0], x.Size-1)) {
			return fmt.Errorf("turn %d: the octets differ", turn)
		}
	}
	return nil
}

func counting(from *byte, n int) []byte {
	all := make([]byte, n, n+1)
	for i := range all {
		all[i] = *from
		*from++
	}
	return all
}
