// Package semeltest starts a Redis for tests: the program semel, with a clock that the test moves
// and faults that it plants.
//
//	func TestCart(t *testing.T) {
//		server := semeltest.Start(t)
//		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
//		rdb.Set(ctx, "cart:ada", "tea", 30*time.Minute)
//		server.Advance(30 * time.Minute)
//		// the cart is gone, and no time has passed
//	}
//
// The program is what SEMEL_BINARY names, or semel on the PATH. The package needs no client
// library.
package semeltest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const patience = 20 * time.Second // for the start, and for a reply

// Server is a running program. Its methods fail the test that started it; they are safe for
// concurrent use.
type Server struct {
	t    testing.TB
	port int

	mu     sync.Mutex
	conn   net.Conn
	reader *bufio.Reader
}

// Start runs a server on a free port until the test ends. flags are redis-server's:
// "--requirepass", "x". It fails the test when there is no program.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	program, err := find()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ready := filepath.Join(folder, "ready")
	args := append([]string{"redis-server", "--port", "auto", "--bind", "127.0.0.1", "--dir", folder,
		"--ready-file", ready}, flags...)
	var log bytes.Buffer
	process := exec.Command(program, args...)
	process.Stdout, process.Stderr = &log, &log
	// The system ends it with the thread that starts it, so that thread must stay until then.
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended, stop := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		if err := process.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		go func() {
			<-stop
			_ = process.Process.Kill()
		}()
		_ = process.Wait()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t}
	t.Cleanup(func() {
		s.close()
		close(stop)
		<-ended
	})
	for end := time.Now().Add(patience); s.port == 0; time.Sleep(500 * time.Microsecond) {
		select {
		case <-ended:
			t.Fatalf("%s did not start: %s", program, log.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s did not start within %v", program, patience)
		}
		s.port = portIn(ready)
	}
	return s
}

func find() (string, error) {
	if named := os.Getenv("SEMEL_BINARY"); named != "" {
		if _, err := exec.LookPath(named); err != nil {
			return "", fmt.Errorf("SEMEL_BINARY: %w", err)
		}
		return named, nil
	}
	found, err := exec.LookPath("semel")
	if err != nil {
		return "", fmt.Errorf("no program semel: name it in SEMEL_BINARY, or put it on the PATH")
	}
	return found, nil
}

func portIn(ready string) int {
	text, _ := os.ReadFile(ready)
	for _, line := range strings.Split(string(text), "\n") {
		if port, ok := strings.CutPrefix(line, "port="); ok {
			number, _ := strconv.Atoi(port)
			return number
		}
	}
	return 0
}

// Addr is host:port, for redis.Options.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port is that of Addr.
func (s *Server) Port() int { return s.port }

// URL is redis://host:port/0.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Advance moves the clock on, by whole milliseconds. What has ended by then is gone when this
// returns.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.must("SEMEL.CLOCK", "ADVANCE", strconv.FormatInt(d.Milliseconds(), 10))
}

// Freeze stops the clock; Advance still moves it.
func (s *Server) Freeze() {
	s.t.Helper()
	s.must("SEMEL.CLOCK", "FREEZE")
}

// Run lets the clock run on, ahead of the machine's by all that it was advanced.
func (s *Server) Run() {
	s.t.Helper()
	s.must("SEMEL.CLOCK", "REAL")
}

// Now is the time of the clock.
func (s *Server) Now() time.Time {
	s.t.Helper()
	text := fmt.Sprint(s.must("SEMEL.CLOCK", "NOW"))
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatalf("SEMEL.CLOCK NOW: %s", text)
	}
	return time.UnixMilli(ms)
}

// Flush removes all keys, functions and faults, and lets the clock run.
func (s *Server) Flush() {
	s.t.Helper()
	s.ClearFaults()
	s.Run()
	s.must("FLUSHALL")
	s.must("FUNCTION", "FLUSH")
}

// Fault is what goes wrong with the requests that match. One of the first four fields says what.
type Fault struct {
	Error     string        // the reply is this error, and the command does not run: "LOADING not yet"
	Delay     time.Duration // the command runs after this time of the server's clock, 60 s at most
	Drop      bool          // the connection is closed, and the command does not run
	DropReply bool          // the command runs, and the connection is closed instead of its reply

	Command string // glob, as "set" or "h*"; empty: all but HELLO, AUTH, CLIENT, PING and their like
	Key     string // glob that one of the command's keys matches; empty: any
	Nth     int    // the first matching request that it acts on; 0: the first
	Count   int    // how many in a row; 0: one; negative: all that follow
}

func (f Fault) words() []string {
	words := []string{"SEMEL.FAULT", "ADD"}
	switch {
	case f.Error != "":
		words = append(words, "ERROR", f.Error)
	case f.Delay > 0:
		words = append(words, "DELAY", strconv.FormatInt(f.Delay.Milliseconds(), 10))
	case f.DropReply:
		words = append(words, "DROP-REPLY")
	case f.Drop:
		words = append(words, "DROP")
	}
	if f.Command != "" {
		words = append(words, "COMMAND", f.Command)
	}
	if f.Key != "" {
		words = append(words, "KEY", f.Key)
	}
	if f.Nth != 0 {
		words = append(words, "NTH", strconv.Itoa(f.Nth))
	}
	if f.Count != 0 {
		words = append(words, "COUNT", strconv.Itoa(max(f.Count, 0)))
	}
	return words
}

// Fault plants a fault.
func (s *Server) Fault(fault Fault) {
	s.t.Helper()
	s.must(fault.words()...)
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.t.Helper()
	s.must("SEMEL.FAULT", "CLEAR")
}

// Do sends one command on a connection of the server's own. Replies are string, int64, nil, and
// []any of them; an error reply is an error.
func (s *Server) Do(words ...string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		conn, err := net.DialTimeout("tcp", s.Addr(), patience)
		if err != nil {
			return nil, err
		}
		s.conn, s.reader = conn, bufio.NewReader(conn)
	}
	_ = s.conn.SetDeadline(time.Now().Add(patience))
	request := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := s.conn.Write(request)
	var reply any
	if err == nil {
		reply, err = read(s.reader)
	}
	if err != nil { // the next call has a new connection
		_ = s.conn.Close()
		s.conn = nil
		return nil, err
	}
	if refused, ok := reply.(ReplyError); ok {
		return nil, refused
	}
	return reply, nil
}

func (s *Server) must(words ...string) any {
	s.t.Helper()
	reply, err := s.Do(words...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return reply
}

func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// ReplyError is an error that the server answered.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

func read(reader *bufio.Reader) (any, error) {
	line, err := reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	if kind == '+' {
		return text, nil
	}
	if kind == '-' {
		return ReplyError(text), nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || kind == ':' {
		return number, err
	}
	if number < 0 {
		return nil, nil
	}
	if kind == '$' {
		bulk := make([]byte, number+2)
		_, err := io.ReadFull(reader, bulk)
		return string(bulk[:number]), err
	}
	items := make([]any, 0, number)
	for range number {
		item, err := read(reader)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
