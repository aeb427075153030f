// What h2spec is built from: it is a program, and nothing here is Go.
module barepost/conform

go 1.18

require (
	github.com/fatih/color v1.18.0
	github.com/mattn/go-colorable v0.1.13
	github.com/mattn/go-isatty v0.0.20
	github.com/spf13/cobra v1.8.1
	github.com/spf13/pflag v1.0.5
	github.com/summerwind/h2spec v2.2.1+incompatible
	golang.org/x/net v0.33.0
	golang.org/x/sys v0.28.0
	golang.org/x/text v0.21.0
)

require github.com/inconshreveable/mousetrap v1.1.0 // indirect
