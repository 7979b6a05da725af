package mpa

import "strings"

// awaited is a frame of the startup that a machine waits for.
type awaited uint8

const (
	awaitRequest  awaited = iota + 1 // or what is served in place of it
	awaitReply                       // of a Request
	awaitRtr                         // after an accepting Reply [T02]
	awaitStartKey                    // [K02]
	awaitMessage                     // a private data message of the streaming mode [K07]
)

var awaitedFrames = [...]struct {
	name string
	key  string
}{
	awaitRequest:  {"MPA Request Frame", KeyRequest},
	awaitReply:    {"MPA Reply Frame", KeyReply},
	awaitRtr:      {"Rtr frame", KeyRtr},
	awaitStartKey: {"Start Key", KeyStart},
	awaitMessage:  {"private data message", ""},
}

func (a awaited) String() string { return awaitedFrames[a].name }
func (a awaited) key() string    { return awaitedFrames[a].key }

// isRtr reports whether a key is that of the Rtr frame.
//
// The 2007 proposal spells it "MPA ID Rtr Frame" in letters and "MPA ID RtR Frame"
// in bytes: the bytes are sent, and both are taken. [T02]
func isRtr(key string) bool { return key == KeyRtr || key == KeyRtrInLetters }

// isStartKey reports whether 16 bytes begin with the Start Key's 15. [K04]
func isStartKey(data string) bool { return strings.HasPrefix(data, KeyStart) }

// arrival is what kind of frame has arrived.
type arrival uint8

const (
	arrivedNothing arrival = iota
	arrivedFrame           // a Request, Reply or Rtr frame
	arrivedStartKey
	arrivedMessage
)
