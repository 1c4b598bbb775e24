package config

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// AccountTokens are the flags for the lifetime of service account tokens.
type AccountTokens struct {
	Longest time.Duration // that may be requested; 0 for any
	Extend  bool          // tokens that programs may not read again live for a year
}

func (t *AccountTokens) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&t.Longest, "service-account-max-token-expiration", t.Longest,
		"maximum lifetime of a service account token; longer requests are shortened to it. At least 1h; 0 for no limit")
	fs.BoolVar(&t.Extend, "service-account-extend-token-expiration", t.Extend,
		"let tokens mounted into pods live for a year, for programs that read them only once, and count late uses in a metric")
}

func (t *AccountTokens) validate() error {
	if t.Longest != 0 && (t.Longest < time.Hour || t.Longest > 1<<32*time.Second) {
		return errors.New("--service-account-max-token-expiration: must be between 1 hour and 2^32 seconds")
	}
	return nil
}
