//! Operation codes.

macro_rules! op_codes {
    ($($name:ident = $code:literal, $short:literal;)*) => {
        /// The operation that a request header names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum OpCode { $($name = $code,)* }

        impl OpCode {
            /// The operation with this code, if a client may send it.
            pub fn from_code(code: i32) -> Option<OpCode> {
                match code { $($code => Some(OpCode::$name),)* _ => None }
            }

            /// The abbreviation that the four-letter word `cons` prints as a connection's last operation.
            pub fn short_name(self) -> &'static str {
                match self { $(OpCode::$name => $short,)* }
            }
        }
    };
}

op_codes! {
    Create = 1, "CREA";
    Delete = 2, "DELE";
    Exists = 3, "EXIS";
    GetData = 4, "GETD";
    SetData = 5, "SETD";
    GetAcl = 6, "GETA";
    SetAcl = 7, "SETA";
    GetChildren = 8, "GETC";
    Sync = 9, "SYNC";
    Ping = 11, "PING";
    GetChildren2 = 12, "GETC";
    Check = 13, "CHEC";
    Multi = 14, "MULT";
    Create2 = 15, "CREA";
    Reconfig = 16, "RECO";
    CheckWatches = 17, "CHKW";
    RemoveWatches = 18, "REMW";
    CreateContainer = 19, "CREA";
    DeleteContainer = 20, "DELE";
    CreateTtl = 21, "CREA";
    MultiRead = 22, "MLTR";
    Auth = 100, "NA";
    SetWatches = 101, "SETW";
    Sasl = 102, "NA";
    GetEphemerals = 103, "GETE";
    GetAllChildrenNumber = 104, "GETACN";
    SetWatches2 = 105, "STW2";
    AddWatch = 106, "ADDW";
    WhoAmI = 107, "HOMI";
    // ClickHouse Keeper's own. ZooKeeper knows no abbreviations for them.
    FilteredList = 500, "NA";
    CheckNotExists = 501, "NA";
    CreateIfNotExists = 502, "NA";
    RemoveRecursive = 503, "NA";
    CheckStat = 504, "NA";
    TryRemove = 505, "NA";
    FilteredListWithStatsAndData = 506, "NA";
    ListRecursive = 507, "NA";
    CreateSession = -10, "SESS";
    CloseSession = -11, "CLOS";
    // Between members only: a client that sends them is told that they do not exist.
    ResumeSession = -12, "SESS";
    ExpireSession = -13, "CLOS";
    FoundEnsemble = -14, "RECO";
    SettleReconfig = -15, "RECO";
    SetSecret = -16, "NA";
    BindSession = -17, "SESS";
    BetweenGroups = -18, "NA";
}

impl OpCode {
    pub fn code(self) -> i32 {
        self as i32
    }

    /// True if ClickHouse Keeper knows the operation and ZooKeeper does not.
    pub fn is_of_clickhouse(self) -> bool {
        self.code() >= OpCode::FilteredList.code()
    }
}
