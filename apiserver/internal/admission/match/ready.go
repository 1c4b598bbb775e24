package match

import "errors"

// Ready refuses, in upstream's words, until all stored configuration has been
// read: until then it is unknown which webhooks and policies apply.
func Ready(synced <-chan struct{}) error {
	select {
	case <-synced:
		return nil
	default:
		return errors.New("not yet ready to handle request")
	}
}
