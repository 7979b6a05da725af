package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// services are the commands whose options can also be set by environment variables, as units and containers do.
func services() []string { return []string{"serve", "disk"} }

// fromEnvironment has a variable stand for each option of a service that the command line does not set.
func fromEnvironment(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		for _, flag := range command.Flags {
			if isService(command.Name) && flag.Name != "help" && flag.Name != "version" {
				flag.Envs = []string{variable(command.Name, flag.Name)}
				flag.Value.Tag.Envs = flag.Envs
			}
		}
	}
	return nil
}

// variable is the name of the variable of an option: IWARP_SERVE_MAX_CONNECTIONS of --max-connections.
func variable(command, flag string) string {
	return "IWARP_" + strings.ToUpper(command+"_"+strings.ReplaceAll(flag, "-", "_"))
}

func isService(command string) bool { return slices.Contains(services(), command) }

// withoutVariables is kong's help of a value: one line below tells of the variables of all.
func withoutVariables(value *kong.Value) string { return value.Help }

// environmentText says how the options of a service are set without a command line.
func environmentText(command string) string {
	return "A variable can set each option that the command line does not: " + variable(command, "metrics") +
		" for --metrics, and so on."
}
