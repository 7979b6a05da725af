package perf

import (
	"bytes"
	"testing"
)

func TestPatternDependsOnPlaceAndSlice(t *testing.T) {
	whole := make([]byte, 3*period)
	pattern{salt: 5}.fill(whole, 0)
	for _, off := range []int{0, 1, period - 6, period, 2*period - 1} {
		part := make([]byte, 100)
		pattern{salt: 5}.fill(part, off)
		if !bytes.Equal(part, whole[off:off+100]) {
			t.Errorf("at offset %d the pattern is not what it is in a larger buffer", off)
		}
		pattern{salt: 6}.fill(part, off)
		if bytes.Equal(part, whole[off:off+100]) {
			t.Errorf("at offset %d another slice has the same bytes", off)
		}
	}
}

func TestPoisonDiffersInEveryByte(t *testing.T) {
	right, poison := make([]byte, 2*period), make([]byte, 2*period)
	pattern{salt: 77}.fill(right, 1000)
	pattern{salt: 77}.poison(poison, 1000)
	for i := range right {
		if right[i] == poison[i] {
			t.Fatalf("byte %d is the same in both", i)
		}
	}
}

func TestStamp(t *testing.T) {
	for _, test := range []struct {
		size int
		want []byte
	}{
		{1, []byte{0x08}},
		{3, []byte{0x06, 0x07, 0x08}},
		{8, []byte{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08}},
		{9, []byte{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xff}},
	} {
		msg := bytes.Repeat([]byte{0xff}, test.size)
		if stamp(msg, 0x0102030405060708); !bytes.Equal(msg, test.want) {
			t.Errorf("%d bytes: got % x, want % x", test.size, msg, test.want)
		}
	}
}
