package fault_test

import (
	"flag"
	"fmt"
	"os"
	"syscall"

	"github.com/weirnet/weir/fault"
)

// The third send answers EPERM. Whoever makes the calls asks before each.
func Example() {
	plan, err := fault.Parse("send#3=EPERM")
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := fault.NewInjector(plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		if d := in.Check(fault.Send, 5); d.Errno == syscall.EPERM {
			fmt.Println("refused by rule", d.Rule)
		} else {
			fmt.Println("sent")
		}
	}
	fmt.Print(in.Log())
	// Output:
	// sent
	// sent
	// refused by rule 1
	// sent
	// send#3=EPERM: hit 1 of 4
}

// A plan in Go has the same text as one that was parsed.
func ExamplePlan() {
	fmt.Println(fault.Plan{Seed: 7, Rules: []fault.Rule{
		{Call: fault.Send, FD: fault.OnlyFD(5), From: 2, Times: 10, Action: fault.Action{Errno: syscall.ENOBUFS}},
		{Call: fault.Send, Chance: 0.01, Action: fault.Action{Drop: true}},
		{Call: fault.Recv, Times: -1, Action: fault.Action{Short: 1}},
	}})
	// Output: seed=7; send@fd5#2x10=ENOBUFS; send%0.01=drop; recv=short:1
}

// A plan is a flag's value; the message of a wrong one says what would be right.
func ExamplePlan_UnmarshalText() {
	var plan fault.Plan
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.SetOutput(os.Stdout)
	flags.Usage = func() {}
	flags.TextVar(&plan, "fault", fault.Plan{}, "what shall go wrong")
	_ = flags.Parse([]string{"-fault", "wait#4=delay:20ms; send#0=EPERM"})
	// Output: invalid value "wait#4=delay:20ms; send#0=EPERM" for flag -fault: fault: rule 2 ("send#0=EPERM"): "#0": want a number from 1 to 2147483647
}

// A sweep learns how many calls there are, and then fails each of them once, with each errno.
func ExampleInjector_Calls() {
	program := func(in *fault.Injector) {
		in.Check(fault.Socket, -1)
		in.Check(fault.Duplicate, 5)
		in.Check(fault.Close, 5)
		in.Check(fault.Close, 6)
	}
	count, _ := fault.NewInjector(fault.Plan{})
	program(count)
	runs := 0
	for call, n := range count.Calls() {
		for k := range n {
			for _, errno := range fault.Errnos(call) {
				in, err := fault.NewInjector(fault.Plan{Rules: []fault.Rule{
					{Call: call, From: k + 1, Action: fault.Action{Errno: errno}},
				}})
				if err != nil {
					fmt.Println(err)
					return
				}
				program(in)
				runs += in.Hits()[0]
			}
		}
	}
	fmt.Println(runs, "runs, each with its fault")
	// Output: 16 runs, each with its fault
}
