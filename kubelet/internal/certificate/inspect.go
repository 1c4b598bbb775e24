package certificate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.uber.org/zap"

	"kctl/proto/pki"
)

// state is the condition of the stored certificate.
type state int

const (
	none   state = iota // there is none, or it has expired
	broken              // it was; the file was put aside
	good
)

// inspect determines the state of the stored certificate. A file that can't be
// read as one, because the machine lost power or its disk was full, is put
// aside for people to look at, so that another can take its place.
func (o Options) inspect() (state, error) {
	file := o.File()
	pair, err := pki.Load(file, file)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("certificate: %w", err)
	}
	cert, err := pair.TLS()
	if err != nil {
		aside := file + ".broken"
		o.Logger.Warn("a damaged certificate was moved aside; delete it if you don't need it", zap.String("file", aside), zap.Error(err))
		if err := os.Rename(file, aside); err != nil {
			return none, fmt.Errorf("certificate: %w", err)
		}
		return broken, nil
	}
	now := o.Clock.Now()
	if now.Before(cert.Leaf.NotBefore) {
		// Others, whose clocks may be right, may accept it.
		o.Logger.Warn("a certificate is not valid yet by this machine's clock: is the clock right?",
			zap.String("file", file), zap.Time("clock", now), zap.Time("valid", cert.Leaf.NotBefore))
	}
	if !cert.Leaf.NotAfter.After(now) {
		return none, nil
	}
	return good, nil
}
