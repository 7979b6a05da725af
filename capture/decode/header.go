package decode

import (
	"bytes"
	"encoding/json"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// header returns the fields of the RDMAP header, as package rdmap has them of each opcode.
func (f *FPDU) header() []rdmap.Field {
	if f.Segment.Tagged {
		return nil
	}
	return f.Op.Fields(f.Segment.Payload)
}

// describe returns them in words.
func (f *FPDU) describe() string {
	if f.Segment.Tagged {
		return ""
	}
	return f.Op.Describe(f.Segment.Payload)
}

// headerOf returns the RDMAP header as a part of an object, whose member has the name that the table of opcodes gives
// it.
func headerOf(f *FPDU) any {
	fields := f.header()
	if len(fields) == 0 {
		return struct{}{}
	}
	info, _ := f.Op.Info()
	return map[string]jsonHeader{info.Key: fields}
}

// jsonHeader is an object of the fields in their order, or the value of the only one, which has no name.
type jsonHeader []rdmap.Field

func (h jsonHeader) MarshalJSON() ([]byte, error) {
	if len(h) == 1 && h[0].Key == "" {
		return json.Marshal(h[0].Value)
	}
	parts := make([]any, len(h))
	for i, f := range h {
		parts[i] = map[string]any{f.Key: f.Value}
	}
	return object(parts), nil
}

// object returns one JSON object with the members of several, in their order.
func object(parts []any) []byte {
	var all, one bytes.Buffer
	for _, p := range parts {
		one.Reset()
		_ = encoder(&one).Encode(p) // it is of types of ours, all of which can be
		if members := bytes.TrimSuffix(one.Bytes()[1:], []byte("}\n")); len(members) > 0 {
			all.WriteByte(wording.If(all.Len() == 0, "{", ",")[0])
			all.Write(members)
		}
	}
	all.WriteByte('}')
	return all.Bytes()
}
