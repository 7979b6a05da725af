//go:build linux && interposer

package programs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/stream"
)

// An exchange is what the two ends of rstream do with -I 1: they greet each other, and then one sends so many messages, and the other as
// many back. The octets of each direction count up from its first.
type exchange struct {
	size, count int
}

const greeting = 16 // octets

func (x *exchange) parse(t *testing.T, options string) {
	t.Helper()
	words := strings.Fields(options)
	for i, word := range words {
		if word == "-S" || word == "-C" {
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				t.Fatal(err)
			}
			*map[string]*int{"-S": &x.size, "-C": &x.count}[word] = n
		}
	}
}

// octets are all of a direction.
func (x *exchange) octets() []byte {
	all := make([]byte, greeting+x.size*x.count)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// lead is the client's part.
func (x *exchange) lead(conn io.ReadWriter) error {
	return errors.Join(x.greet(conn), x.greeted(conn), x.send(conn), x.receive(conn))
}

// follow is the server's.
func (x *exchange) follow(conn io.ReadWriter) error {
	return errors.Join(x.greeted(conn), x.greet(conn), x.receive(conn), x.send(conn))
}

func (x *exchange) greet(conn io.Writer) error {
	_, err := conn.Write(x.octets()[:greeting])
	return err
}

func (x *exchange) greeted(conn io.Reader) error { return want(conn, x.octets()[:greeting]) }

// swap is what the ends of riostream do with -C 1 beside greeting each other: they write into each other's memory by turns, of which the last octet
// counts the turns, and the others count up. They need no message: each looks at its last octet. The client has the first turn.
func (x *exchange) swap(conn *stream.Conn, mine *stream.Mapping, first bool, iterations int) error {
	var up [2]byte // what the next octet is, of the peer's and of ours
	for turn := range 2 * iterations {
		if (turn%2 == 0) == first {
			if _, err := conn.WriteAt(append(counting(&up[1], x.size-1), byte(turn)), 0); err != nil {
				return fmt.Errorf("turn %d: %w", turn, err)
			}
			continue
		}
		got := make([]byte, x.size)
		for got[x.size-1] = byte(turn) + 1; got[x.size-1] != byte(turn); {
			if _, err := mine.ReadAt(got, 0); err != nil {
				return err
			}
			runtime.Gosched()
		}
		if !bytes.Equal(got[:x.size-1], counting(&up[0], x.size-1)) {
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

func (x *exchange) send(conn io.Writer) error {
	all := x.octets()[greeting:]
	for i := range x.count {
		if _, err := conn.Write(all[i*x.size:][:x.size]); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

func (x *exchange) receive(conn io.Reader) error { return want(conn, x.octets()[greeting:]) }

func want(conn io.Reader, octets []byte) error {
	got := make([]byte, len(octets))
	if n, err := io.ReadFull(conn, got); err != nil {
		return fmt.Errorf("after %d octets: %w", n, err)
	}
	if !bytes.Equal(got, octets) {
		return errors.New("the octets differ")
	}
	return nil
}
