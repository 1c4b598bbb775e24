package informer

import "sync"

// Listeners are functions that want to know when something else than stored objects changes. The zero
// value has none. It is safe for concurrent use.
type Listeners struct {
	mu  sync.Mutex
	all map[*func()]bool
}

// OnChange adds a function to be called for every change, until forget is called. The function must
// not block.
func (l *Listeners) OnChange(f func()) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*func()]bool{}
	}
	l.all[&f] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, &f)
	}
}

// Notify calls the functions.
func (l *Listeners) Notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.all {
		(*f)()
	}
}
