package main

import "github.com/spf13/cobra"

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknown(about, rest[0])
			}
			about.InitDefaultHelpFlag() // so that these are listed
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}
