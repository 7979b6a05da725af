package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// byStranger is the text about a peer that can be reached, and is no server of a command.
func byStranger(command string, err error) (string, bool) {
	server := listeners[command]
	if server == "" {
		return "", false
	}
	startup := new(mpa.StartupError)
	protocol := new(rsockets.Error)
	switch {
	case errors.As(err, &startup) && startup.Role == mpa.RoleInitiator && startup.Failure == mpa.FailureTimeout:
		return fmt.Sprintf("%s accepts TCP but does not speak iWARP, or not yet: check the port, or start %s there", peerOf(err), server), true
	case command == "cat" && errors.As(err, &protocol) && errors.Is(err, rsockets.ErrVersion),
		command == "disk" && errors.Is(err, ulpdata.ErrConvention),
		command == "cp" && errors.As(err, new(*iwarp.VerifyError)):
		return fmt.Sprintf("no %s answers there: start one, or check the port", server), true
	}
	return "", false
}

// peerOf is the address of the peer of a call that failed.
func peerOf(err error) string {
	op := new(iwarp.OpError)
	switch {
	case errors.As(err, &op) && op.Addr != nil:
		return op.Addr.String()
	case errors.As(err, &op) && op.To != "":
		return op.To[strings.LastIndexByte(op.To, ' ')+1:] // without the network
	}
	return "the peer"
}
