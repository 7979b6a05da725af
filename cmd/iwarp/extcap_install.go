package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// personalExtcap is how tshark -G folders begins the line of the folder that is the user's own. Wireshark has one from
// 4.2 on.
const personalExtcap = "Personal Extcap path:"

// install puts a script for Wireshark into a folder of the user's, or says what root must do.
func (c *extcapCmd) install(ctx context.Context, std streams) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("extcap: %w", err)
	}
	dir := c.Dir
	if dir == "" {
		folders, err := exec.CommandContext(ctx, "tshark", "-G", "folders").Output()
		if err != nil {
			return fmt.Errorf("extcap: tshark -G folders: %w: name Wireshark's folder by --dir", err)
		}
		var personal bool
		if dir, personal = extcapFolder(folders); dir == "" {
			return errors.New("extcap: tshark -G folders names no folder for extcap: name it by --dir")
		} else if !personal {
			fmt.Fprintf(std.out, "This Wireshark has no folder for extcap of your own. As root:\n    %s extcap --install --dir %s\n", program, dir)
			return nil
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("extcap: %w", err)
		}
	}
	name, script := extcapScript(program)
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil { //nolint:gosec // others run it, too
		return fmt.Errorf("extcap: %w", err)
	}
	fmt.Fprintf(std.out, "installed %s: choose iwarp among Wireshark's interfaces, or tshark -i iwarp\n", path)
	return nil
}

// extcapFolder finds the folder in what tshark -G folders prints: the user's own, or else that of all.
func extcapFolder(folders []byte) (dir string, personal bool) {
	for line := range bytes.Lines(folders) {
		name, path, ok := strings.Cut(string(line), "xtcap path:")
		if path = strings.TrimSpace(path); !ok || path == "" {
			continue
		}
		if personal = name+"xtcap path:" == personalExtcap; personal || dir == "" {
			dir = path
		}
		if personal {
			break
		}
	}
	return dir, personal
}

// extcapScript is a program for Wireshark, which calls one without a command.
func extcapScript(program string) (name, script string) {
	if runtime.GOOS == "windows" {
		return "iwarp.bat", fmt.Sprintf("@\"%s\" extcap %%*\r\n", program)
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	return "iwarp", "#!/bin/sh\nexec " + quoted + " extcap \"$@\"\n"
}
