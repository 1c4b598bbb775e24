package cluster

import "path/filepath"

// Local is a cluster of `kctl up`, as a kubeconfig leads to it.
type Local struct {
	Dir       string
	Scheduler string // where it serves, as a URL
}

// Of finds the cluster whose directory a kubeconfig lies in; nil if it is none of
// `kctl up`, or not this user's to look at.
func Of(kubeconfig string) *Local {
	if kubeconfig == "" {
		return nil
	}
	l, err := newLayout(filepath.Dir(kubeconfig))
	if err != nil {
		return nil
	}
	s, err := loadSettings(l)
	if err != nil {
		return nil
	}
	return &Local{Dir: l.Dir, Scheduler: s.scheduler()}
}
