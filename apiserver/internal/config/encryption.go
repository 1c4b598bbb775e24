package config

import (
	"errors"

	"github.com/spf13/pflag"
)

// Encryption are the flags for encryption at rest.
type Encryption struct {
	File   string
	Reload bool
}

func (e *Encryption) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.File, "encryption-provider-config", e.File,
		"file with an EncryptionConfiguration: which resources are encrypted in etcd, and with which keys")
	fs.BoolVar(&e.Reload, "encryption-provider-config-automatic-reload", e.Reload,
		"reload --encryption-provider-config when it changes, without a restart")
}

func (e *Encryption) validate() error {
	if e.Reload && e.File == "" {
		return errors.New("--encryption-provider-config-automatic-reload: requires --encryption-provider-config")
	}
	return nil
}
