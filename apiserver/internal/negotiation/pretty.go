package negotiation

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Pretty reports whether the answer to r is for people to read, and so to be
// indented: c, its form, or ?pretty says so; otherwise the user agent decides,
// for tools such as curl and browsers, as upstream.
func Pretty(r *http.Request, c Clause) bool {
	if c.Params["pretty"] == "1" {
		return true
	}
	if said := r.URL.Query().Get("pretty"); said != "" {
		pretty, _ := strconv.ParseBool(said)
		return pretty
	}
	agent := r.UserAgent()
	return slices.ContainsFunc([]string{"curl/", "Wget/", "Mozilla/5.0"}, func(tool string) bool {
		return strings.HasPrefix(agent, tool)
	})
}
