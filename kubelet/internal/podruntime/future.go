package podruntime

import "sync"

// future is a value that a goroutine is computing.
type future[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// begin computes a value in a goroutine that group waits for.
func begin[T any](group *sync.WaitGroup, get func() (T, error)) *future[T] {
	f := &future[T]{done: make(chan struct{})}
	group.Go(func() {
		defer close(f.done)
		f.value, f.err = get()
	})
	return f
}

// known is a future with a value.
func known[T any](value T) *future[T] {
	f := &future[T]{done: make(chan struct{}), value: value}
	close(f.done)
	return f
}

func (f *future[T]) wait() (T, error) {
	<-f.done
	return f.value, f.err
}
