# Sets resource limits and a Landlock ruleset (landlock(7)), then executes a command.
#
#     perl restrict.pl NUMBER RESOURCE=LIMIT ... PATH ... -- COMMAND [ARGUMENT ...]
#
# NUMBER is that of prlimit64. Files outside the PATHs cannot be opened for writing. Mounts already
# prevent that, except for named pipes: a read-only mount does not stop a program that writes to one.
# It is in Perl because a Python interpreter takes six times as long to start.

my ($landlock_create, $landlock_add, $landlock_restrict) = (444, 445, 446);
my ($write_file, $move_between_folders) = (1 << 1, 1 << 13);
my ($path_only, $path_beneath, $no_such_file) = (0x200000, 1, 2);

sub call {  # not copied, since some calls write to an argument
    my $result = syscall($_[1], @_[2 .. $#_]);
    die "the sandbox cannot be made: $_[0]: $!\n" if $result < 0;
    return $result;
}

sub grant {
    my ($ruleset, $path, $rights) = @_;
    sysopen(my $file, $path, $path_only) or return;
    call("landlock_add_rule", $landlock_add, $ruleset, $path_beneath,
        pack("Ql", $rights, fileno($file)), 0);
}

my $prlimit = shift @ARGV;
while ($ARGV[0] =~ /^(\d+)=(\d+)$/) {
    my ($resource, $limit, $now) = ($1, $2, "\0" x 16);
    call("prlimit64", $prlimit, 0, $resource + 0, 0, $now);
    my ($soft, $hard) = unpack("QQ", $now);
    $limit = $hard if $hard < $limit;
    call("prlimit64", $prlimit, 0, $resource + 0, pack("QQ", $limit, $limit), 0);
    shift @ARGV;
}

my $handled = pack("Q", $write_file | $move_between_folders);
my $ruleset = call("landlock_create_ruleset", $landlock_create, $handled, length $handled, 0);
grant($ruleset, "/", $move_between_folders);
while (($_ = shift @ARGV) ne "--") {
    grant($ruleset, $_, $write_file);
}
call("landlock_restrict_self", $landlock_restrict, $ruleset, 0);

delete $ENV{PERL_BADLANG};
exec { $ARGV[0] } @ARGV;
my $status = $! == $no_such_file ? 127 : 126;
print STDERR "$ARGV[0]: $!\n";
exit $status;
