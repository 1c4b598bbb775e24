package accept

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ByPeople tells whether the answer to r is for people to read, and so to be laid out:
// c, the form that it is in, or ?pretty says so, and without these tools that people look
// at answers with are known by their names, as upstream knows them.
func ByPeople(r *http.Request, c Clause) bool {
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
