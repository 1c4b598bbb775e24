package negotiation

import (
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether the client accepts answers that are compressed with gzip (RFC
// 9110, section 12.5.3), and says so by name.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		name, weight, _ := strings.Cut(params, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			return true
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		return err != nil || q > 0
	}
	return false
}
