package match

import "errors"

// Ready refuses, in upstream's words, while what is stored of a configuration
// has not all been read: nobody can say yet what counts for a request.
func Ready(synced <-chan struct{}) error {
	select {
	case <-synced:
		return nil
	default:
		return errors.New("not yet ready to handle request")
	}
}
