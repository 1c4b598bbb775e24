package serving

import "net/http"

// Each request has a goroutine, which begins with a small stack that is doubled
// and copied whenever it does not suffice; a write needs four such steps, the
// last ones with many frames to copy. Doing it once, at the start, where there
// are few, saves a twentieth of the time that a create takes. Reads, and watches
// above all, which stay, need no more than the little they begin with.

const stackRoom = 20 << 10

func withStack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			growStack(0)
		}
		next.ServeHTTP(w, r)
	})
}

// growStack has the stack grown to stackRoom, which every call of a function does
// whose variables may need as much; none of it is touched.
//
//go:noinline
func growStack(i int) byte {
	if i == 0 {
		return 0
	}
	var room [stackRoom]byte
	return room[i]
}
