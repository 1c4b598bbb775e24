package serving

import "net/http"

// Each request has a goroutine, which starts with a small stack that is doubled
// and copied whenever it does not suffice. A write needs four such steps, the
// last ones with many frames to copy; growing the stack once at the start, when
// there are few, saves a twentieth of a create's time. Reads, and above all
// watches, which stay, need no more than the initial stack.

const stackRoom = 20 << 10

func withStack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			growStack(0)
		}
		next.ServeHTTP(w, r)
	})
}

// growStack makes the stack grow to stackRoom, as a call of any function with
// that much of local variables does; none of it is touched.
//
//go:noinline
func growStack(i int) byte {
	if i == 0 {
		return 0
	}
	var room [stackRoom]byte
	return room[i]
}
