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
	fs.DurationVar(&t.Longest, "service-account-max-token-expiration", t.Longest, "longest life of a service account token; those asked to live longer live as long as this. At least an hour; 0 for no bound")
	fs.BoolVar(&t.Extend, "service-account-extend-token-expiration", t.Extend, "have the tokens that pods find in them live for a year, for programs that read them once only, and count the uses that come too late")
}

func (t *AccountTokens) validate() error {
	if t.Longest != 0 && (t.Longest < time.Hour || t.Longest > 1<<32*time.Second) {
		return errors.New("--service-account-max-token-expiration: must be between 1 hour and 2^32 seconds")
	}
	return nil
}
