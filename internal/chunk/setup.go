package chunk

import (
	"encoding/binary"
	"errors"
)

// SetupLen is the length of an INIT's or INIT ACK's value without parameters, in bytes.
const SetupLen = 16

// Errors of [ParseSetup].
var (
	// ErrShort: there is no room for the fields.
	ErrShort = errors.New("sctp: an INIT without its fields")
	// ErrParameter: a parameter is not whole.
	ErrParameter = errors.New("sctp: an INIT with a parameter that is not whole")
)

// A Setup is what an INIT or INIT ACK says: RFC 9260, sections 3.3.2 and 3.3.3. Of its parameters it has those that
// follow the fields here.
type Setup struct {
	Tag, Window uint32
	Out, In     uint16 // streams
	TSN         uint32 // of the first DATA chunk

	// Adaptation is the Adaptation Layer Indication (RFC 5061), if there is one.
	Adaptation    uint32
	HasAdaptation bool
	// Cookie is the State Cookie of an INIT ACK, or nil.
	Cookie []byte
}

// ParseSetup reads the value of an INIT or INIT ACK. With ErrParameter it returns what stands before the parameter.
func ParseSetup(b []byte) (s Setup, err error) {
	if len(b) < SetupLen {
		return s, ErrShort
	}
	s = Setup{
		Tag: binary.BigEndian.Uint32(b), Window: binary.BigEndian.Uint32(b[4:]),
		Out: binary.BigEndian.Uint16(b[8:]), In: binary.BigEndian.Uint16(b[10:]), TSN: binary.BigEndian.Uint32(b[12:]),
	}
	params, whole := Parameters(b[SetupLen:])
	for _, p := range params {
		s.setParameter(p)
	}
	if !whole {
		return s, ErrParameter
	}
	return s, nil
}

// setParameter sets what a parameter has. Parameters of other types are for what an association can do without.
func (s *Setup) setParameter(p Parameter) {
	switch {
	case p.Type == ParamStateCookie:
		s.Cookie = p.Value
	case p.Type == ParamAdaptation && len(p.Value) == 4:
		s.Adaptation, s.HasAdaptation = binary.BigEndian.Uint32(p.Value), true
	}
}

// Indicates reports whether there is an Adaptation Layer Indication, and which.
func (s *Setup) Indicates(adaptation uint32) bool {
	return s.HasAdaptation && s.Adaptation == adaptation
}

// Append appends the value of an INIT or INIT ACK.
func (s *Setup) Append(b []byte) []byte {
	b = s.AppendFields(b)
	if s.Cookie != nil {
		b = appendField(b, ParamStateCookie, s.Cookie)
	}
	if s.HasAdaptation {
		b = appendField(b, ParamAdaptation, binary.BigEndian.AppendUint32(nil, s.Adaptation))
	}
	return b
}

// AppendFields appends the value without parameters, which has [SetupLen] bytes.
func (s *Setup) AppendFields(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, s.Tag)
	b = binary.BigEndian.AppendUint32(b, s.Window)
	b = binary.BigEndian.AppendUint16(b, s.Out)
	b = binary.BigEndian.AppendUint16(b, s.In)
	return binary.BigEndian.AppendUint32(b, s.TSN)
}
